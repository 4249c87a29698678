"""How long linting takes, as ratios measured in the same run.

    python -m benchmarks.lint [--runs 3] [--folder DIR …]

Prints: a hook's whole process for one changed file, against ``python -c "import typer"``;
a cold lint of the pinned projects (or of the given folders) with one process and with two,
against a bare ``libcst.parse_module`` of their files that mention torch; and a warm run against the
cold one. Every figure is the best of the runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

from benchmarks.migrate import parse_all
from benchmarks.projects import PROJECTS, fetch

CHANGED = "import torch\n\n\ndef move(x):\n    torch.cuda.synchronize()\n    return x.cuda()\n"


def best(runs: int, work: Callable[[], object]) -> float:
    """The shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def lint(*arguments: str) -> None:
    command = [sys.executable, "-m", "migrator", "lint", "-v2.6", "--isolated", "-o", "/dev/null", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"npumigrate ended with status {done.returncode}: {done.stderr.decode()}")


def hook(runs: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "changed.py"
        number = 0

        def changed() -> None:
            nonlocal number
            number += 1
            file.write_text(f"{CHANGED}# {number}\n")
            lint(str(file), "--cache-dir", scratch)

        changed()
        ours = best(runs * 5, changed)
        typer = best(runs * 5, lambda: subprocess.run([sys.executable, "-c", "import typer"], check=True))
        print(f"hook, one changed file: {ours:.3f} s; import typer: {typer:.3f} s; ratio {ours / typer:.2f}")


def whole(folders: list[Path], runs: int) -> None:
    names = [str(folder) for folder in folders]

    def cold(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            lint(*names, "-j", str(jobs), "--cache-dir", scratch)

    _, lines = parse_all(folders)
    bare = best(runs, lambda: parse_all(folders))
    one, two = best(runs, lambda: cold(1)), best(runs, lambda: cold(2))
    print(f"{lines} lines in files that mention torch; bare LibCST parse: {bare:.2f} s")
    print(
        f"cold, one process: {one:.2f} s, ratio {one / bare:.2f}; "
        f"two: {two:.2f} s, {one / two:.2f} times as fast"
    )
    with tempfile.TemporaryDirectory() as scratch:
        lint(*names, "--cache-dir", scratch)
        warm = best(runs, lambda: lint(*names, "--cache-dir", scratch))
    print(f"warm: {warm:.2f} s, ratio to cold {warm / one:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", action="append", type=Path)
    arguments = parser.parse_args()
    hook(arguments.runs)
    whole(arguments.folder or [fetch(project) for project in PROJECTS], arguments.runs)


if __name__ == "__main__":
    main()
