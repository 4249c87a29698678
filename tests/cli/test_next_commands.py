"""What a migration says to run next can be pasted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.cli.ending import wrapped
from migrator.cli.main import run
from migrator.cli.next_commands import after_verification, own_command, shell_word
from tests.reading import write

LAUNCH = Path(__file__).parents[1] / "launch"
ODD = (
    "my $HOME 'x' \"y\"",
    b"\xff`id`".decode("utf-8", "surrogateescape"),
    *(
        pytest.param(name, marks=pytest.mark.thorough)
        for name in ("plain", "-dash", "two\nlines", "grün & <b>")
    ),
)


@pytest.mark.parametrize("name", ODD)
def test_the_launch_command_can_be_pasted(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.mkdir()
    shutil.copy(LAUNCH / "program.py", source / "train.py")
    line = [sys.executable, "-m", "migrator", f"--input=./{name}", "-o", ".", "-v", "2.6", "-m", "train.py"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, check=True)
    head, report, verify, launch = done.stdout.decode().splitlines()[-4:]
    assert head == "Next"
    subprocess.run(["bash", "-c", f"{report} -q"], cwd=tmp_path, check=True)
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {verify}"], capture_output=True, check=True).stdout
    *_, folder, option, count, dashes, bash, launcher, _ = os.fsdecode(words).split("\0")
    assert [option, count, dashes, bash, launcher] == "--devices 2 -- bash run_distributed_npu.sh".split()
    assert (tmp_path / folder / launcher).is_file()
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(LAUNCH / "stub")}
    command = ["bash", "-c", f"{launch} --nproc 1 -- a"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    said = [json.loads(line) for line in ran.stdout.decode().splitlines() if line.startswith("{")]
    assert [one["args"] for one in said] == [["a"]]


def test_words_of_a_shell() -> None:
    assert shell_word("out/p_msft") == "out/p_msft"
    assert shell_word("a b") == "'a b'"
    assert shell_word("a\n'b\\") == r"$'a\x0a\x27b\x5c'"


def test_how_npumigrate_is_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "my bin" / "npumigrate"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command() == f"'{program}'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command() == "npumigrate"
    monkeypatch.setattr(sys, "argv", ["/somewhere/migrator/__main__.py"])
    assert own_command() == f"{shell_word(sys.executable)} -m migrator"


def test_nothing_is_started_without_a_launcher(migrate, tmp_path: Path) -> None:
    source = tmp_path / "library"
    write(source, {"layers.py": "import torch\n\n\ndef f(x):\n    return x.cuda()\n"})
    assert migrate(source)[0].out.splitlines()[-2] == "Next"
    train = "import torch\ntorch.ones(1).sum().backward()\n"
    write(source, {"train.py": train, "run_distributed_npu.sh": "mine\n"})
    said = migrate(source, "--overwrite")[0].out.splitlines()
    assert (said[-2], "verify" in said[-1]) == ("Next", False)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["api", "torch.cuda.Event"], "lint"),
        (["api", "torch.fft.rff*"], "api torch.fft.rfft"),
        (["api", "torch.cuda.Evnt"], "api torch.cuda.Event"),
        (["rule", "NPU601", "npu101"], "lint --select NPU601,NPU101"),
        (["db", "releases", "2.6"], "lint -v 2.6.0"),
        (["db", "diff", "2.12", "2.13"], "lint -v 2.13.0"),
        (["launch", "rank-table", "--hosts", "a:2", "-o", "my table"], "launch rank-table check 'my table'"),
    ],
)
def test_the_next_command_is_for_people(
    arguments: list[str],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(arguments)
    piped = capsys.readouterr()
    assert "Next" not in piped.out + piped.err
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    run(arguments)
    last = capsys.readouterr().err.splitlines()[-3:]
    assert last == ["", "Next", f"  {own_command()} {command}"]


def test_a_run_that_failed_is_repaired_or_explained(tmp_path: Path) -> None:
    def after(code: int, again: str = "--devices 2") -> list[str]:
        commands = after_verification(tmp_path, "run.sh", code, False, again, ["python", "my train.py"])
        return [command.replace(own_command(), "npumigrate") for command in commands]

    explained = (
        f"npumigrate verify {tmp_path} --devices 2 -- python 'my train.py' 2>&1 | npumigrate explain -"
    )
    assert after(1) == [explained]
    (tmp_path / "migration_report").mkdir()
    repair = f"npumigrate verify {tmp_path} --devices 2 --repair -- python 'my train.py'"
    assert after(1) == [repair, explained]
    assert [command.count("--repair") for command in after(1, "--devices 2 --repair")] == [1]
    assert after(3) == [f"npumigrate lint {tmp_path}"]
    assert after(0)[-1] == f"bash {tmp_path}/run.sh"


def test_lines_are_wrapped_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert wrapped("install the NPU driver", "  ") == "  install the NPU driver"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert wrapped("install the NPU driver", "  ") == "  install the NPU\n  driver"
    assert (
        wrapped("error: /usr/local/Ascend/driver is absent")
        == "error:\n  /usr/local/Ascend/driver\n  is absent"
    )


def test_an_analysis_and_a_diff_say_what_comes_next(npumigrate, project, tmp_path: Path) -> None:
    said = npumigrate("analyze", project, "-o", tmp_path / "out", "-v", "2.6").out.splitlines()
    assert said[-3] == "Next"
    assert said[-2].endswith(f"report {tmp_path}/out/project_analysis")
    assert said[-1].endswith(f"-i {project} -o out -v 2.6.0")
    assert npumigrate(project, "-v", "2.6", "--diff").err.splitlines()[-1] == said[-1]
