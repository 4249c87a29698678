"""How long linting takes, as ratios measured in the same run.

    python -m benchmarks.lint [--runs 3] [--hook | --project NAME … | --folder DIR …]

Prints: the whole process of a hook for a changed training script of 500 lines with thirty findings, of
``api NAME`` and of ``--help``, against ``python -c "import typer"``, all of them in turns; a cold lint of
the pinned projects (or of the given folders) with one process and with two, against a bare
``libcst.parse_module`` of their files that mention torch; and a warm run against the cold one. Seconds of
the projects are the best of the runs; all else is the median.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Callable

from benchmarks.whole_runs import ENVIRONMENT, options, parse_all, project_folders

# No .py: it is material, which no tool is to check.
CHANGED = Path(__file__).with_name("train_script.py.txt").read_text(encoding="utf-8")


def best(runs: int, work: Callable[[], object]) -> float:
    """The shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def python(*arguments: str, status: tuple[int, ...] = (0,)) -> None:
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode not in status:
        raise SystemExit(f"{command} ended with status {done.returncode}: {done.stderr.decode()}")


def lint(*arguments: str, status: tuple[int, ...] = (0, 1, 2)) -> None:
    python("-m", "migrator", "lint", "-v2.6", "--isolated", *arguments, status=status)


def hook(runs: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "changed.py"
        number = 0

        def changed() -> None:
            nonlocal number
            number += 1
            file.write_text(f"{CHANGED}# {number}\n")
            lint(str(file), "--cache-dir", scratch, status=(1,))

        work: dict[str, Callable[[], object]] = {
            "import typer": lambda: python("-c", "import typer"),
            "hook, one changed script": changed,
            "api NAME": lambda: python("-m", "migrator", "api", "torch.cuda.synchronize"),
            "--help": lambda: python("-m", "migrator", "--help"),
        }
        for each in work.values():  # rule packs and byte code are in their caches then
            each()
        turns = [[best(1, each) for each in work.values()] for _ in range(runs * 5)]
        for name, times in zip(work, zip(*turns)):
            ratio = median(time / typer for time, (typer, *_) in zip(times, turns))
            aim = " (aim: at most 3)" if name.startswith("hook") else ""
            print(f"{name}: {median(times):.3f} s, ratio {ratio:.2f}{aim}")


def whole(folders: list[Path], runs: int) -> None:
    names = [str(folder) for folder in folders]

    def cold(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            lint(*names, "-j", str(jobs), "--cache-dir", scratch)

    def both() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(cold, (1, 1)))

    _, lines = parse_all(folders)
    bare = best(runs, lambda: parse_all(folders))
    # In turns, and each against its neighbour: machines have faster and slower minutes.
    turns = [[best(1, partial(cold, jobs)) for jobs in (1, 2)] for _ in range(runs)]
    one, two = (min(times) for times in zip(*turns))
    faster = median(first / second for first, second in turns)
    print(f"{lines} lines in files that mention torch; bare LibCST parse: {bare:.2f} s")
    print(f"cold, one process: {one:.2f} s, ratio {one / bare:.2f}; two: {two:.2f} s, {faster:.2f} x as fast")
    side_by_side = median(2 * best(1, partial(cold, 1)) / best(1, both) for _ in range(runs))
    print(f"two runs of one process side by side, what this machine can do: {side_by_side:.2f} x as fast")
    with tempfile.TemporaryDirectory() as scratch:
        lint(*names, "--cache-dir", scratch)
        warm = best(runs, lambda: lint(*names, "--cache-dir", scratch))
    print(f"warm: {warm:.2f} s, ratio to cold {warm / one:.3f}")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--folder", action="append", type=Path, help="this one instead of pinned projects")
    parser.add_argument("--hook", action="store_true", help="the hook alone")
    chosen = parser.parse_args()
    hook(chosen.runs)
    if not chosen.hook:
        whole(chosen.folder or project_folders(chosen.project), chosen.runs)


if __name__ == "__main__":
    main()
