"""Whole runs of the command over the pinned projects: processor time, as ratios to a bare LibCST parse.

All figures of one table come from one run of the benchmark, this checkout and others (``--reference``) in
turns; each is the least of some runs, in one process. Wall time says little on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.projects import PROJECTS, fetch

HERE = Path(__file__).parents[1]
# As a user has it: with byte code beside the modules.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Cost(NamedTuple):
    """What a run takes: seconds of the processor, peak memory in MiB, seconds on the clock."""

    seconds: float
    memory: int
    wall: float


def options(documentation: str | None) -> argparse.ArgumentParser:
    """A parser with the options of all benchmarks of whole runs."""
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--reference", action="append", type=Path, default=[], help="another checkout, measured side by side"
    )
    names = [project.name for project in PROJECTS]
    parser.add_argument("--project", action="append", choices=names, help="only this one (may be repeated)")
    parser.add_argument("--folder", action="append", type=Path, help="this one instead of pinned projects")
    return parser


def checkouts(chosen: argparse.Namespace) -> dict[str, Path]:
    """This checkout and the references, by what the tables call them."""
    return {"here": HERE, **{folder.name: folder.resolve() for folder in chosen.reference}}


def project_folders(chosen: argparse.Namespace) -> list[Path]:
    """The given folders; else those of the pinned projects, or of the named ones."""
    if chosen.folder:
        return [folder.resolve() for folder in chosen.folder]
    return [fetch(project) for project in PROJECTS if not chosen.project or project.name in chosen.project]


@contextmanager
def together(folders: list[Path]) -> Iterator[Path]:
    """A folder that holds copies of all the others; the one folder itself where there is only one."""
    if len(folders) == 1:
        yield folders[0]
        return
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            shutil.copytree(folder, Path(scratch) / "projects" / folder.name, symlinks=True)
        yield Path(scratch) / "projects"


def bare_parse(folder: Path) -> tuple[float, int]:
    """The processor time that LibCST takes for the files that mention torch, and their lines.

    In a process of its own: those that are measured would begin with the memory of this one.
    """
    command = [sys.executable, "-m", "benchmarks.whole_runs", str(folder)]
    seconds, lines = subprocess.check_output(command, cwd=HERE, text=True).split()
    return float(seconds), int(lines)


def parse_all(folder: Path) -> tuple[float, int]:
    """The same, in this process."""
    import libcst

    seconds, lines = 0.0, 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        if "torch" in text:
            lines += text.count("\n")
            start = process_time()
            libcst.parse_module(text)
            seconds += process_time() - start
    return seconds, lines


def cost(checkout: Path, arguments: Sequence[str], status: Sequence[int] = (0, 1, 2)) -> Cost:
    """What a command of a checkout takes, its children included; ``OUT`` is a folder for its results."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        out.mkdir()
        command = [sys.executable, *(str(out) if each == "OUT" else each for each in arguments)]
        caches = {"XDG_CACHE_HOME": scratch} | {"PYTHONPATH": str(checkout)}
        start = perf_counter()
        process = subprocess.Popen(
            command, env=ENVIRONMENT | caches, cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        errors = process.stderr.read()
        _, ended, usage = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode not in status:
        raise SystemExit(f"{command} ended with status {process.returncode}: {errors.decode()}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, wall)


def commands(source: Path, jobs: int = 1) -> dict[str, list[str]]:
    """The arguments of the commands for a folder."""
    rest = ["-i", str(source), "-o", "OUT", "-v", "2.6", "-q", "--jobs", str(jobs)]
    lint = ["lint", str(source), "-v2.6", "--isolated", "--no-cache", "-q", "-j", str(jobs)]
    every = {"migrate": rest, "analyze": ["analyze", "-m", "torch_apis", *rest], "lint": lint}
    return {name: ["-m", "migrator", *arguments] for name, arguments in every.items()}


def least(runs: int, of: Mapping[str, Path], arguments: Sequence[str]) -> dict[str, Cost]:
    """The least that a command takes in each checkout, which take turns."""
    turns = [{name: cost(checkout, arguments) for name, checkout in of.items()} for _ in range(runs + 1)]
    return {name: min(turn[name] for turn in turns[1:]) for name in of}  # byte code is there then


def print_ratios(chosen: argparse.Namespace, command: str, aim: float) -> None:
    """Print what a command takes in all checkouts, beside a bare parse."""
    with together(project_folders(chosen)) as source:
        parse, lines = min(bare_parse(source) for _ in range(chosen.runs))
        print(
            f"{lines:,} lines in files that mention torch; bare LibCST parse: {parse:.2f} s of the processor"
        )
        for name, each in least(chosen.runs, checkouts(chosen), commands(source)[command]).items():
            ratio = f"ratio {each.seconds / parse:.2f}" + (f" (aim: {aim:.2f})" if name == "here" else "")
            print(f"{command}, {name}: {each.seconds:.2f} s, {ratio}, {each.memory} MiB")


def print_two_processes(chosen: argparse.Namespace, command: str) -> None:
    """How many times as long one process takes as two, on the clock; both take turns."""
    with together(project_folders(chosen)) as source:
        both = [commands(source, jobs)[command] for jobs in (1, 2)]
        turns = [[cost(HERE, arguments).wall for arguments in both] for _ in range(chosen.runs)]
    one, two = (min(seconds) for seconds in zip(*turns))
    print(
        f"one process {one:.1f} s, two {two:.1f} s on the clock: {one / two:.2f} times (aim: at least 1.75)"
    )


if __name__ == "__main__":
    print(*parse_all(Path(sys.argv[1])))
