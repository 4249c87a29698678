"""Runs whole programs, each in processes of its own that have torch already, and says how they ended.

python run_programs.py RUNS RESULTS [MODULE…]
python run_programs.py --serve [MODULE…]

RUNS is a JSON object: under each name the "folder" in which a program runs, its "script" and "arguments",
how many "ranks" it has as torchrun starts them (0: it is started by itself), and where the emulator's
"report" goes. RESULTS gets a JSON object with, under the same names, "code", "output", "errors" and
"seconds". With --serve, each line of standard input is one such run, and each line of output says how it
ended; what a program raises is noted in its report. The modules are imported once, before the first program
starts: that is what takes long.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

SECONDS = 100  # for one program


def run_all(runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: run(item) for name, item in runs.items()}


def run(item: dict[str, Any]) -> dict[str, Any]:
    """Run a program in one child for each of its ranks; what they print comes together by ranks."""
    start = time.monotonic()
    ranks = item["ranks"] or 1
    port = free_port() if item["ranks"] else 0
    children = [start_child(item, rank, port) for rank in range(ranks)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    code = next((code if code > 0 else 128 - code for code in codes if code), 0)
    output, errors = (
        "".join(printed(item, rank, stream).read_text(errors="replace") for rank in range(ranks))
        for stream in (1, 2)
    )
    return {"code": code, "output": output, "errors": errors, "seconds": time.monotonic() - start}


def printed(item: dict[str, Any], rank: int, stream: int) -> Path:
    """What a rank prints to its standard output (1) or error (2)."""
    return Path(f"{item['report']}.{rank}.{stream}.txt")


def start_child(item: dict[str, Any], rank: int, port: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(SECONDS)
        for stream in (1, 2):
            with printed(item, rank, stream).open("wb") as file:
                os.dup2(file.fileno(), stream)
        status = as_program(item, rank, port)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def as_program(item: dict[str, Any], rank: int, port: int) -> int:
    """Run the script as `python script arguments` does, or as one rank of torchrun; return its exit code."""
    os.chdir(item["folder"])
    if item["ranks"]:
        size = str(item["ranks"])
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=size, LOCAL_WORLD_SIZE=size)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    begin_report(item["report"])
    sys.argv = [item["script"], *item["arguments"]]
    script = Path(item["folder"], item["script"])
    sys.path[0] = str(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        noted = sys.modules.get("npumigrate_emulator.failures")
        if noted is not None:
            noted.note(error)
        traceback.print_exc()
        return 1
    return 0


def begin_report(folder: str) -> None:
    """Let this process write a report, and those that it starts."""
    os.environ["NPUMIGRATE_EMULATOR_REPORT"] = folder
    from npumigrate_emulator import report

    report.begin()
    if Path(folder, "places.json").exists():
        from npumigrate_emulator import reached

        os.environ["NPUMIGRATE_EMULATOR_PLACES"] = str(Path(folder, "places.json"))
        reached.install()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def serve() -> None:
    """Run one program for each line of JSON that comes in, and answer with how it ended."""
    from npumigrate_emulator import failures

    failures.install()
    failures.after_torch()
    answers = os.fdopen(os.dup(1), "w")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__" and sys.argv[1] == "--serve":
    for module in sys.argv[2:]:
        importlib.import_module(module)
    serve()
elif __name__ == "__main__":
    runs_file, results_file, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    Path(results_file).write_text(json.dumps(run_all(json.loads(Path(runs_file).read_text()))))
