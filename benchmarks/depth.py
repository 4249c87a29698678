"""How many of our files and functions one file passes through in lint.

python -m benchmarks.depth [FILE]

Counts the modules of ``migrator`` of which some function runs, and the functions, in one process; generator
expressions and the like are left out.
"""

from __future__ import annotations

import argparse
import inspect
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.lint import CHANGED
from benchmarks.whole_runs import HERE

_OURS = str(HERE / "migrator")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", help="else a training script of 500 lines with thirty findings")
    parser.add_argument("--list", action="store_true", help="name all functions")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        file = chosen.file
        if file is None:
            file = str(Path(scratch) / "changed.py")
            Path(file).write_text(CHANGED)
        lint = ["lint", "-v2.6", "--isolated", "--no-cache", file]
        os.environ["XDG_CACHE_HOME"] = scratch
        functions_of(lint)  # rule packs come into their cache
        functions = functions_of(lint)
    files = {name for name, _, _ in functions}
    print(f"{len(files)} files (aim: 70), {len(functions)} functions (aim: 400)")
    for name, line, function in sorted(functions) if chosen.list else ():
        print(f"{name}:{line} {function}")


def functions_of(arguments: list[str]) -> set[tuple[str, int, str]]:
    """The functions of npumigrate that a run of the command calls, in its own process."""
    command = [sys.executable, "-m", "benchmarks.depth", "--run", *arguments]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines = (line.split("\t") for line in done.stderr.splitlines())
    return {(name, int(line), function) for name, line, function in lines}


def run(arguments: list[str]) -> None:
    """Run the command, and write on standard error through which functions it went."""
    seen: set[Any] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    def end(status: int = 0) -> None:
        sys.setprofile(None)
        functions = (code for code in seen if code.co_flags & inspect.CO_OPTIMIZED and code.co_name[0] != "<")
        for code in functions:
            if code.co_filename.startswith(_OURS):
                name = os.path.relpath(code.co_filename, HERE)
                print(name, code.co_firstlineno, code.co_name, sep="\t", file=sys.stderr, flush=True)
        leave(status)

    leave = os._exit
    os._exit = end  # type: ignore[assignment]  # lint ends so
    sys.argv = ["npumigrate", *arguments]
    sys.setprofile(note)
    try:
        runpy.run_module("migrator", run_name="__main__")
    finally:
        end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2:])
    main()
