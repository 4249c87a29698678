"""How long a migration takes, as a ratio to a bare LibCST parse in the same run.

    python -m benchmarks.migrate [--runs 3]

Prints, for the pinned projects together and with one process: the time of
``libcst.parse_module`` on their files that mention torch, the time of the
whole command ``npumigrate -i … -o …``, their ratio, and the command's peak
memory; then the time for the smallest project by itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.projects import PROJECTS, fetch


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


def migrate(source: Path, jobs: int = 1) -> tuple[float, int]:
    """Seconds and peak memory (KiB) of one whole run of the command."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "migrator", "-i", str(source), "-o", out, "-v", "2.6", "-q"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, "--jobs", str(jobs)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"npumigrate ended with status {status}")
    return seconds, usage.ru_maxrss


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--runs", type=int, default=3)
    runs = arguments.parse_args().runs
    folders = [fetch(project) for project in PROJECTS]
    with tempfile.TemporaryDirectory() as scratch:
        together = Path(scratch) / "projects"
        together.mkdir()
        for folder in folders:
            subprocess.run(["cp", "-r", str(folder), str(together)], check=True)
        ratios = []
        for _ in range(runs):
            parse, lines = parse_all(folders)
            one, memory = migrate(together)
            ratios.append(one / parse)
            print(
                f"{lines:,} lines that mention torch: parse {parse:.1f} s, migrate {one:.1f} s, "
                f"ratio {one / parse:.2f}, peak memory {memory / 1024:.0f} MB"
            )
        two, _ = migrate(together, jobs=2)
        print(f"two processes: {two:.1f} s")
        print(f"ratio: best {min(ratios):.2f}, worst {max(ratios):.2f} (aim: at most 0.50)")
    small = fetch(PROJECTS[4])
    seconds, _ = migrate(small)
    lines = sum(path.read_bytes().count(b"\n") for path in small.rglob("*.py"))
    print(f"{small.name}, {lines:,} lines: {seconds:.2f} s (aim: about a second)")


if __name__ == "__main__":
    main()
