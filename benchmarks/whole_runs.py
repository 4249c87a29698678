"""Whole runs of the command over the pinned projects, as ratios to a bare LibCST parse in the same run."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.projects import PROJECTS, fetch


def options(documentation: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark of whole runs can be told."""
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    names = [project.name for project in PROJECTS]
    parser.add_argument("--project", action="append", choices=names, help="only this one (may be repeated)")
    return parser


def project_folders(names: list[str] | None) -> list[Path]:
    """The folders of the pinned projects, or of the named ones."""
    return [fetch(project) for project in PROJECTS if not names or project.name in names]


# As a user has it: with byte code beside the modules.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def together(folders: list[Path]) -> Iterator[Path]:
    """A folder that holds copies of all the others."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            shutil.copytree(folder, Path(scratch) / "projects" / folder.name, symlinks=True)
        yield Path(scratch) / "projects"


def parse_all(folders: list[Path]) -> tuple[float, int]:
    """Seconds that LibCST takes for the files that mention torch, and their lines."""
    import libcst

    seconds, lines = 0.0, 0
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            if "torch" not in text:
                continue
            lines += text.count("\n")
            start = time.perf_counter()
            libcst.parse_module(text)
            seconds += time.perf_counter() - start
    return seconds, lines


def measured(source: Path, command: list[str], jobs: int = 1) -> tuple[float, int]:
    """Seconds and peak memory (KiB) of one whole run of the command for a folder."""
    with tempfile.TemporaryDirectory() as out:
        arguments = [*command, "-i", str(source), "-o", out, "-v", "2.6", "-q", "--jobs", str(jobs)]
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "migrator", *arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"npumigrate ended with status {status}")
    return seconds, usage.ru_maxrss


def print_ratios(folders: list[Path], source: Path, command: list[str], runs: int, aim: float) -> None:
    """Measure the command with one process, each time beside a bare parse."""
    ratios = []
    for _ in range(runs):
        parse, lines = parse_all(folders)
        seconds, memory = measured(source, command)
        ratios.append(seconds / parse)
        print(
            f"{lines:,} lines that mention torch: parse {parse:.1f} s, npumigrate {seconds:.1f} s, "
            f"ratio {seconds / parse:.2f}, peak memory {memory / 1024:.0f} MB"
        )
    print(f"ratio: best {min(ratios):.2f}, worst {max(ratios):.2f} (aim: at most {aim:.2f})")


def print_two_processes(source: Path, command: list[str], runs: int) -> None:
    """How many times as long one process takes as two; both take turns, so that a busy machine slows both."""
    turns = [[measured(source, command, jobs)[0] for jobs in (1, 2)] for _ in range(runs)]
    one, two = (min(seconds) for seconds in zip(*turns))
    print(f"one process {one:.1f} s, two {two:.1f} s: {one / two:.2f} times (aim: at least 1.75)")
