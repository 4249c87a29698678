"""Every command that a page shows can be given: all are parsed, those of the READMEs are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer

from migrator.cli import lint, main
from migrator.cli.api import parser as api_parser
from migrator.cli.migrate import translated
from migrator.cli.start import split_language

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```$|((?:^ {4}\S.*\n)+)", re.M | re.S)
_SCHEMATIC = re.compile(r"[…<]|\[[-\w]+\]|\{|\w\|\w")  # an outline of a command, not one


def blocks(page: Path) -> Iterator[list[list[str]]]:
    """The commands of each of a page's blocks: the words behind ``npumigrate``."""
    for fenced, indented in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield list(_commands(fenced, indented))


def _commands(fenced: str, indented: str) -> Iterator[list[str]]:
    for line in (fenced or indented).replace("\\\n", " ").splitlines():
        line = line.strip().removeprefix("$ ")
        line = line if fenced else line.partition("  ")[0]  # what it does stands behind it
        for part in [] if _SCHEMATIC.search(line.partition("#")[0]) else re.split(r"&&|\||;", line):
            try:
                words = shlex.split(part.partition(" > ")[0], comments=True)
            except ValueError:
                continue
            while words and (re.fullmatch(r"[A-Z_]+=.*", words[0]) or words[0] in ("uvx", "exec")):
                words = words[1:]
            if words and Path(words[0]).name == "npumigrate":
                yield words[1:]


def understood(words: list[str]) -> None:
    """Let the parser of a command read its words, and nothing more."""
    words = split_language(words)[0]
    if not words or words in (["--help"], ["-V"], ["--version"]):
        return
    name, *rest = words
    if name not in main.COMMANDS:
        name, rest = "migrate", words
    if name in ("lint", "check", "upgrade"):
        lint.command_line(rest)
    elif name == "api":
        api_parser().parse_args(rest)
    else:
        command: Any = typer.main.get_command(main.parser(name))
        rest = translated([name, *rest])[1:] if name == "migrate" else rest
        command = command.commands[name]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        if "--help" not in rest:
            command.make_context(name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_is_understood(page) -> None:
    for words in chain.from_iterable(blocks(page)):
        try:
            understood(words)
        except BaseException as error:
            pytest.fail(f"{shlex.join(['npumigrate', *words])}: {type(error).__name__}: {error}")


# What needs the emulator, an NPU or a record of a run; a client or people who look on; other files.
_ELSEWHERE = (
    "emulate",
    "verify",
    "record",
    "compare",
    "server",
    "mcp",
    "fleet",
    "profile",
    "doctor",
    "explain",
)


@pytest.mark.parametrize("page", ["README.md", pytest.param("README.zh.md", marks=pytest.mark.thorough)])
def test_the_commands_of_a_readme_run_one_after_the_other(page, tmp_path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    ran = 0
    for number, block in enumerate(blocks(ROOT / page)):
        folder = tmp_path / str(number)
        shutil.copytree(ROOT / "samples", folder / "samples")
        shutil.copytree(ROOT / "samples" / "resnet18_cifar", folder / "my_project")
        for words in block:
            if words[0] in _ELSEWHERE:
                continue
            command = [sys.executable, "-m", "migrator", *words]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode in ((0, 1) if "lint" in words else (0,)), (words, done.stderr)
            ran += 1
    assert ran > 10
