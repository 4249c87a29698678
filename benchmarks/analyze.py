"""How long an analysis takes, as a ratio to a bare LibCST parse in the same run.

    python -m benchmarks.analyze [--runs 3] [--mode torch_apis]

Prints, for the pinned projects together and with one process: the time of ``libcst.parse_module`` on their
files that mention torch, the time of the whole command ``npumigrate analyze``, their ratio, and the command's
peak memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.migrate import parse_all
from benchmarks.projects import PROJECTS, fetch


def analyze(source: Path, mode: str) -> tuple[float, int]:
    """Seconds and peak memory (KiB) of one whole run of the command, with one process."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "migrator", "analyze", "-i", str(source), "-o", out, "-v", "2.6"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, "-m", mode, "-q", "--jobs", "1"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"npumigrate ended with status {status}")
    return seconds, usage.ru_maxrss


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--mode", default="torch_apis")
    chosen = arguments.parse_args()
    folders = [fetch(project) for project in PROJECTS]
    with tempfile.TemporaryDirectory() as scratch:
        together = Path(scratch) / "projects"
        together.mkdir()
        for folder in folders:
            subprocess.run(["cp", "-r", str(folder), str(together)], check=True)
        ratios = []
        for _ in range(chosen.runs):
            parse, lines = parse_all(folders)
            seconds, memory = analyze(together, chosen.mode)
            ratios.append(seconds / parse)
            print(
                f"{lines:,} lines that mention torch: parse {parse:.1f} s, {chosen.mode} {seconds:.1f} s, "
                f"ratio {seconds / parse:.2f}, peak memory {memory / 1024:.0f} MB"
            )
        print(f"ratio: best {min(ratios):.2f}, worst {max(ratios):.2f} (aim: at most 0.30)")


if __name__ == "__main__":
    main()
