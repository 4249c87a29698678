"""What the command line says before, or instead of, working."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrator import __version__, this_copy
from migrator.cli import main
from tests.reading import sources

HEAVY = ["pandas", "jedi", "libcst", "torch", "numpy", "yaml"]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["migrate", "--help"]])
def test_help_shows_every_option_within_80_columns(npumigrate, arguments) -> None:
    answer = npumigrate(*arguments)
    assert answer.code == 0
    options = (
        "input output version select ignore safe-only rules exclude overwrite diff mode jobs quiet verbose"
    )
    assert [option for option in options.split() if f"--{option}" not in answer.out] == []
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize("width", [80, 100, 120])
def test_all_help_has_one_style_and_nothing_is_cut(npumigrate, monkeypatch, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    below = {"db": ["diff", "releases"], "launch": ["k8s", "mpi", "rank-table"]}
    lines = [
        [name, *more] for name in main.COMMANDS for more in ([], *([each] for each in below.get(name, ())))
    ]
    for line in lines:
        text = npumigrate(*line, "--help").out
        assert text.startswith(
            f"Usage: npumigrate {'lint' if line[0] in ('check', 'upgrade') else ' '.join(line)}"
        )
        assert "\nOptions:\n" in text
        assert "  -h, --help" in text
        assert not re.search(r"\.\.\.$|\S <\w|list\[", text, re.M), text
        assert max(map(len, text.splitlines())) <= min(width, 100)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from migrator.cli.main import run; run(['--help']);"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stderr.strip() == "[]"


def test_help_lists_every_command(npumigrate) -> None:
    listed = npumigrate("--help").out.partition("Commands:")[2].partition("Usage:")[0]
    commands = {line.split()[0] for line in listed.splitlines() if line[2:3].strip()}
    folder = Path(main.__file__).parent
    assert {
        path.stem for path in folder.glob("*.py") if f"\ndef {path.stem}(" in path.read_text()
    } <= commands
    assert {"db", "launch", "version"} <= commands
    for command in commands:
        assert npumigrate(command, "--help").code == 0


def test_a_command_loads_no_other_one() -> None:
    code = (
        "import sys; from migrator.cli.main import run; run(['rule', 'NPU101']);"
        "print(sorted(name for name in sys.modules if name.startswith('migrator.cli.')), file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ["ending", "main", "next_commands", "options", "progress", "rule"]
    assert answer.stderr.strip() == str([f"migrator.cli.{name}" for name in own])


@pytest.mark.parametrize("arguments", [["version"], ["-V"], ["--version"]])
def test_version(npumigrate, arguments) -> None:
    answer = npumigrate(*arguments)
    assert (answer.code, answer.out) == (0, f"npumigrate {this_copy.version()}\n")
    assert this_copy.version().startswith(__version__)


def test_python_m_migrator() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "migrator", "-V"], capture_output=True, text=True, check=True
    )
    assert answer.stdout == f"npumigrate {this_copy.version()}\n"


WHEEL = {"url": "file:///tmp/npumigrate-0.1.0-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://example.org/n.git", "vcs_info": {"vcs": "git", "commit_id": "1a2b3c4d5e6f7"}}
TAG = {**GIT, "vcs_info": {**GIT["vcs_info"], "requested_revision": "v0.1.0"}}
PIP = f"{shlex.quote(sys.executable)} -m pip install"


@pytest.mark.parametrize(
    ("direct", "installer", "marker", "command", "version"),
    [
        ({}, "pip", "", f"{PIP} 'npumigrate[xlsx]'", __version__),
        (WHEEL, "pip", "", f"{PIP} 'npumigrate[xlsx] @ {WHEEL['url']}'", __version__),
        (
            *(GIT, "pip", "", f"{PIP} 'npumigrate[xlsx] @ git+https://example.org/n.git@1a2b3c4d5e6f7'"),
            f"{__version__} (1a2b3c4d5e)",
        ),
        (
            *(TAG, "uv", "uv-receipt.toml"),
            "uv tool install 'npumigrate[xlsx] @ git+https://example.org/n.git@v0.1.0'",
            f"{__version__} (1a2b3c4d5e)",
        ),
        ({}, "pip", "pipx_metadata.json", "pipx install --force 'npumigrate[xlsx]'", __version__),
        (
            *({}, "uv", "", f"uv pip install --python {shlex.quote(sys.executable)} 'npumigrate[xlsx]'"),
            __version__,
        ),
    ],
)
def test_an_extra_is_installed_as_this_copy_was(
    direct, installer, marker, command, version, tmp_path, monkeypatch
) -> None:
    folder = tmp_path / "npumigrate-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: npumigrate\nVersion: 0.1.0\n")
    (folder / "INSTALLER").write_text(f"{installer}\n")
    if direct:
        (folder / "direct_url.json").write_text(json.dumps(direct))
    if marker:
        (tmp_path / marker).write_text("")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(this_copy, "_OURS", False)
    assert this_copy.install_command("xlsx") == command
    assert this_copy.version() == version
    monkeypatch.setattr(this_copy, "_OURS", True)
    assert "-e " in this_copy.install_command("xlsx")
    assert "npumigrate[xlsx]" not in this_copy.install_command("xlsx").replace(str(this_copy._ROOT), "")


def test_no_text_installs_from_where_npumigrate_is_not() -> None:
    """It is not on PyPI yet: what stands in a text has to say from where."""
    root = Path(main.__file__).parents[2]
    folders = (root / name for name in ("migrator", "reports", "docs", "editors/vscode/src"))
    files = [
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.suffix in (".py", ".po", ".md", ".ts")
    ]
    files += [root / "README.md", root / "README.zh.md", root / "editors/vscode/README.md"]
    wrong = re.compile(r"(?:pip|uv tool|pipx) install ['\"]?npumigrate(?:\[\w+\])?['\"]?(?! @)\W*$", re.M)
    assert [file for file in files if wrong.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-v", "2.6"], ["-i/--input", "-o/--output"]),
        (["migrate", "-q"], ["-i/--input", "-o/--output"]),
        (["analyze", "-q"], ["-i/--input", "-o/--output"]),
        (["migrate", "p", "-i", "q", "-o", "out"], ["p, q"]),
        (["p", "-o", "out"], ["p"]),
        (["-i", "nowhere", "-o", "q"], ["nowhere"]),
        (["-i", "", "-o", "q", "-v", "2.6"], ["-i/--input"]),
        (["--diff", "-v", "2.6"], ["-i/--input"]),
        (["-i", "p", "--nonsense"], ["--nonsense"]),
        (["-i"], ["-i"]),
        (["-i", "p", "-o", "q", "-v", "2.6", "--mode", "magic"], ["--mode", "rewrite", "transfer"]),
        (["-i", "p", "-o", "q", "-v", "2.6", "--jobs", "0"], ["--jobs"]),
        (["-i", "p", "-o", "q", "-v", "2.6", "--jobs", "many"], ["--jobs"]),
        (["-i", "p", "-o", "q", "-v", "2.6", "--quiet", "--verbose"], ["--quiet", "--verbose"]),
        (["-i", "p", "-o", "q", "-v", "0.1"], ["0.1", "2.6"]),
        (
            ["-i", "p", "-o", "q", "-v", "2.7.1", "--hw", "910"],
            ["--hw: choose from A1, A2, A3, 950DT, not '910'"],
        ),
        (["analyze", "p", "-o", "q", "--hw", "910"], ["--hw: choose from A1, A2, A3, 950DT, not '910'"]),
        (["conjure"], ["conjure"]),
        (["-i", "p", "stray", "-o", "q", "-v", "2.6"], ["stray"]),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(npumigrate, arguments, named) -> None:
    answer = npumigrate(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1
    assert answer.err.startswith("npumigrate: ")
    for name in named:
        assert name in answer.err


ALONE = ["", "migrate", "analyze", "verify", "report", "launch", "rule", "db", "api", "completion"]


@pytest.mark.parametrize("command", ALONE)
def test_a_bare_command_shows_its_help(npumigrate, command) -> None:
    answer = npumigrate(*filter(None, [command]))
    assert (answer.code, answer.err) == (2, "")
    assert answer.out.lower().startswith(f"usage: npumigrate {command}".rstrip())
    assert max(map(len, answer.out.splitlines())) <= 80


def test_the_input_is_a_word(npumigrate, project, tmp_path: Path) -> None:
    made = []
    for before in ([], ["migrate"], ["analyze"]):
        out = tmp_path / "-".join(["out", *before])
        assert npumigrate(*before, project, "-o", out, "-v", "2.6").code == 0
        (result,) = out.iterdir()
        made.append(sources(result))
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["li"], ["lint"]),
        (["lint", "--output-f"], ["--output-file", "--output-format"]),
        (["lint", "--color", ""], ["always", "auto", "never"]),
        (["check", "--stat"], ["--statistics"]),
        (["migrate", "--mode", ""], ["rewrite", "transfer"]),
        (["launch", "k"], ["k8s"]),
        (["launch", "k8s", "--fr"], ["--from"]),
        (["-i", "x", "--over"], ["--overwrite"]),
        (["verify", "x", "--", "--"], []),
        (["completion", "b"], ["bash"]),
    ],
)
def test_what_a_shell_offers(npumigrate, words, offered) -> None:
    assert npumigrate("completion", "words", "--", *words).out.split() == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    called = tmp_path / "npumigrate"
    called.write_text(f'#!/bin/sh\nexec {sys.executable} -m migrator "$@"\n')
    called.chmod(0o755)
    line = 'eval "$(./npumigrate completion bash)"; COMP_WORDS=(./npumigrate lint --outp); COMP_CWORD=2;'
    line += '_npumigrate ./npumigrate; echo "${COMPREPLY[@]}"'
    answer = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout == "--output-file --output-format\n"


@pytest.mark.parametrize("command", ["migrate", "analyze"])
def test_without_a_version_the_requirements_say_it(npumigrate, project, tmp_path: Path, command: str) -> None:
    (project / "requirements.txt").write_text("torch==2.1.2\n")
    answer = npumigrate(command, "-i", project, "-o", tmp_path / "out")
    line = "npumigrate: Target: torch 2.1.0 (requirements.txt:1 has torch==2.1.2). Override with -v"
    assert (answer.code, answer.err) == (0, line + "\n")
    assert "for torch 2.1.0" in answer.out
    (summary,) = (tmp_path / "out").rglob("summary.json")
    assert json.loads(summary.read_text())["torch"] == "2.1.0"
    assert npumigrate(command, "-q", "-i", project, "-o", tmp_path / "quiet").err == ""


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_rule(npumigrate, project, option) -> None:
    answer = npumigrate("-i", project, "--diff", "-v", "2.6", option, "NPU101,NOPE999")
    assert answer.code == 2
    assert "NOPE999" in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_bad_rule_pack_names_file_and_line(npumigrate, project, tmp_path: Path) -> None:
    pack = tmp_path / "mine.yaml"
    pack.write_text("- code: ACME101\n  colour: red\n")
    answer = npumigrate("-i", project, "--diff", "-v", "2.6", "--rules", pack)
    assert answer.code == 2
    assert f"{pack}:1: " in answer.err
    assert "colour" in answer.err
