"""Names of folders, scripts, arguments and hosts that a shell, Python or a template could take for more."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.cli.main import run
from migrator.launch.mpi import MpiLineError, plan
from migrator.launch.rank_table import RankTableError
from migrator.launch.target import BOOT, NAME, Start, boot_file, parse_pair, run_script, start_of
from migrator.project.start_ways import StartWay

HERE = Path(__file__).parent
BY_LAUNCHER = StartWay("launcher")
# Fields of the templates, commands, quotes, line ends, options: none of it means anything in a name.
FOLDERS = [
    "a @MODULE_ROOT@ $(touch PWNED)",
    "a @MODULE@ `touch PWNED`",
    "@VARIABLES@'; touch PWNED; '",
    'it\'s "$(touch PWNED)"',
    "two\nlines; touch PWNED",
    "-n $HOME \\",
    "\"@MODULE_ROOT@\" or __import__('os').mkdir('PWNED') #",
    "{}  # @VARIABLES@",
]


def package(folder: Path, name: str) -> str:
    """A script of a package below ``folder/name``; gives its path."""
    inner = folder / name / "tool"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    shutil.copy(HERE / "program.py", inner / "train.py")
    return f"{name}/tool/train.py"


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", FOLDERS)
def test_the_run_script_starts_what_it_was_made_for(tmp_path: Path, name: str, relative: bool) -> None:
    entry = package(tmp_path, name)
    start = start_of(entry, relative, lambda each: (tmp_path / each).is_file(), {entry: BY_LAUNCHER})
    (tmp_path / NAME).write_text(run_script(start).text)
    done = subprocess.run(
        ["bash", NAME, "--nproc", "1", "--dry-run", "--", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(HERE / "stub")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    command = shlex.split(bash_words(done.stdout))
    assert (f"{name}/tool/train.py" in done.stdout) or command[-1] == name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({name, NAME})
    told = subprocess.run(
        ["bash", "-c", f'{assignments(tmp_path / NAME)}\nprintf "%s\\0" "$entry" "$module" "$module_root"'],
        capture_output=True,
        text=True,
    )
    assert told.stdout.split("\0")[:3] == [start.entry, start.module, start.module_root]


def assignments(script: Path) -> str:
    """The lines that say what is started."""
    return script.read_text().partition("entry=")[2].partition("# How the ranks")[0].join(("entry=", ""))


def bash_words(text: str) -> str:
    """What ``--dry-run`` prints, with its words as another shell reads them."""
    done = subprocess.run(
        ["bash", "-c", f"w=({text.splitlines()[-2]}); printf '%s\\0' \"${{w[@]}}\""],
        capture_output=True,
        text=True,
    )
    return shlex.join(done.stdout.split("\0")[:-1])


@pytest.mark.parametrize("name", FOLDERS)
def test_the_boot_file_says_it_as_python_literals(name: str) -> None:
    start = Start(f"{name}/tool/train.py", "tool.train", name)
    text = boot_file(start, [parse_pair("--map", f"obs://bucket/data={name}/@CONFIG@")]).files[BOOT]
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("ENTRY", "MODULE", "MODULE_ROOT")
    }
    assert values == {"ENTRY": start.entry, "MODULE": "tool.train", "MODULE_ROOT": name}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pod_starts_the_script_with_its_arguments(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    command = ["--", "python", f"src/{name}/@COMMAND@.py", name, "$(touch PWNED)"]
    assert run(["launch", "k8s", "--name", "j", "--image", "i", "--npus", "8", *command]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    pod = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text("#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
    torchrun.chmod(0o755)
    environment = {"PATH": f"{torchrun.parent}:{os.environ['PATH']}", "ASCEND_HOME_PATH": "/there"}
    done = subprocess.run(pod["command"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.split("\0")[-4:-1] == command[2:], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        (["mpirun", "-n", "1", "-x", "A;touch PWNED;B=1", "python", "t.py"], ""),
        (["mpirun", "-n", "1", "-genv", "$(touch PWNED)", "1", "python", "t.py"], ""),
        (["mpirun", "-n", "1", "-H", "$(touch PWNED)", "python", "t.py"], ""),
        (["mpirun", "--hostfile", "hosts", "python", "t.py"], "$(touch${IFS}PWNED) slots=2\n"),
        (["mpirun", "--hostfile", "hosts", "python", "t.py"], "-oProxyCommand=x slots=2\n"),
    ],
)
def test_an_mpi_line_with_a_hostile_variable_or_host_is_refused(line: list[str], hosts: str) -> None:
    with pytest.raises((MpiLineError, RankTableError)) as raised:
        plan(line, lambda _: hosts)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_mpi_line_keeps_its_words(name: str) -> None:
    options = ["-n", "1", "-wdir", name, "-x", f"A={name.replace(',', '')}"]
    line = ["mpirun", *options, "python", f"src/{name}.py", name]
    (command,) = plan(line, lambda _: "").commands
    words = shlex.split(command)
    assert words[:2] == ["cd", name]
    assert f"src/{name}.py" in words
    assert words[-1] == name
