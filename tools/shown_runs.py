"""Runs the commands that a page shows, and writes what they print below them.

    python tools/shown_runs.py                              all pages but the long ones
    python tools/shown_runs.py docs/tutorials/yolov5.md …   these

A page has blocks of two kinds: ```` ```python title="train.py" ```` (of any language) is a file, which is
written; ```` ```console ```` holds commands behind ``$ ``, with what each of them prints below it. All of a
page's commands run in one folder, with the repository's ``samples/`` in it, and from ``cd FOLDER`` on in that
one; ``export NAME=VALUE`` holds for all that follow. An exit code above 1 is an error, unless the page shows
it with ``echo $?``. The tests compare the pages with what they would become.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(
    r"^(?P<head>```(?P<language>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n)(?P<body>.*?)^```$", re.M | re.S
)
LIBRARIES = "SHOWN_RUNS_LIBRARIES"  # a folder with what the programs of a page import, yolov5's for one
_WIDTH = 100
_SECONDS = 900
# Pages with a training run of minutes, which needs libraries, and the heading where it begins.
LONG = {"docs/tutorials/yolov5.md": "\n## 4.", "docs/tutorials/yolov5.zh.md": "\n## 4."}


class FailedError(Exception):
    """A command ended in a way that the page does not show."""


def with_output(page: str, folder: Path) -> str:
    """The text of a page, with what its commands print today. ``folder`` is an empty one to run them in."""
    shutil.copytree(ROOT / "samples", folder / "samples", ignore=shutil.ignore_patterns("__pycache__"))
    here = folder  # where the reader is: after the command cd
    environment = _environment(folder)

    def block(found: re.Match[str]) -> str:
        nonlocal here
        if found["file"]:
            (here / found["file"]).parent.mkdir(parents=True, exist_ok=True)
            (here / found["file"]).write_text(found["body"], encoding="utf-8")
        if found["language"] != "console":
            return found[0]
        parts = [found["head"]]
        commands = [line[2:] for line in found["body"].splitlines() if line.startswith("$ ")]
        code = 0
        for command, following in zip(commands, [*commands[1:], ""]):
            parts.append(f"$ {command}\n")
            if command.startswith("cd "):
                here = here / command[3:]
                continue
            if command.startswith("export "):
                name, _, value = command[7:].partition("=")
                environment[name] = value
                continue
            code, output = _run(command, code, here, environment)
            if code > 1 and following != "echo $?":
                raise FailedError(f"{command}: exit code {code}\n{output}")
            parts.append(output)
        return "".join([*parts, "```"])

    return _BLOCK.sub(block, page)


def _run(command: str, code: int, here: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command, and what it prints; ``code`` is that of the command before it."""
    done = subprocess.run(
        ["bash", "-c", f"(exit {code}); {command}"],
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
    )
    # The first run of all builds the emulated NPU.
    said = ("building the emulated NPU", "built in ", "正在构建模拟 NPU", "已构建")
    building = tuple(f"npumigrate: {each}" for each in said)
    lines = (line for line in done.stdout.decode().splitlines() if not line.startswith(building))
    return done.returncode, "".join(f"{line.rstrip()}\n" for line in lines)


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a reader: npumigrate is on the PATH, and the terminal has no colours."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ours = ("NPUMIGRATE_API_DB", "NPUMIGRATE_LANG")
    dropped = ("PYTHONPATH", "FORCE_COLOR", *ours, "LANGUAGE", "LC_ALL", "LC_MESSAGES")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    who = {
        f"GIT_{who}_{what}": "reader@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    terminal = {"COLUMNS": str(_WIDTH), "NO_COLOR": "1", "LANG": "C.UTF-8"}
    libraries = {"PYTHONPATH": os.environ[LIBRARIES]} if LIBRARIES in os.environ else {}
    return {**kept, **who, **git, **terminal, **libraries, "PATH": programs}


def pages() -> list[str]:
    """The pages of docs/ with commands whose output they show."""
    found = (ROOT / "docs").rglob("*.md")
    shown = [page for page in found if "```console\n$ " in page.read_text(encoding="utf-8")]
    return sorted(str(page.relative_to(ROOT)) for page in shown)


def main(named: list[str]) -> None:
    """Write today's output into the pages."""
    for page in map(ROOT.joinpath, named or [page for page in pages() if page not in LONG]):
        with tempfile.TemporaryDirectory() as folder:
            text = with_output(page.read_text(encoding="utf-8"), Path(folder))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
