"""Runs pieces of Python, each in a process of its own that has torch already, and says what became of them.

python run_examples.py EXAMPLES RESULTS [MODULE…]

EXAMPLES is a JSON object: under each name the texts "setup", "text" and "use", which run one after the other
in one namespace. RESULTS gets a JSON object with, under the same names, either "error" (a traceback) or all
of "values" (of the variables that text and use have set), "printed" (by the text) and "idle" (functions of
the text that were never called). The modules are imported once, before the first one runs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import linecache
import os
import random
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SECONDS = 60  # for one piece
TEXT = "<example>"


def run_all(examples: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    return {name: in_child(example) for name, example in examples.items()}


def in_child(example: dict[str, str]) -> dict[str, Any]:
    """Run one piece in a child process, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work = Path(folder, "work")
                work.mkdir()
                os.chdir(work)
                signal.alarm(SECONDS)
                answer.write_text(json.dumps(run(example)))
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if answer.exists():
            return json.loads(answer.read_text())
        code = os.waitstatus_to_exitcode(status)
        why = f"took more than {SECONDS} s" if -code == signal.SIGALRM else f"ended with {code}"
        return {"error": f"the process {why}"}


def run(example: dict[str, str]) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    random.seed(0)
    code = compile(example["text"], TEXT, "exec", dont_inherit=True)
    linecache.cache[TEXT] = (1, None, example["text"].splitlines(keepends=True), TEXT)  # for tracebacks
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == TEXT:
            called.add(frame.f_code)

    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    try:
        exec(compile(example["setup"], "<setup>", "exec", dont_inherit=True), names)
        given = set(names)
        sys.setprofile(note)
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        exec(compile(example["use"], "<use>", "exec", dont_inherit=True), names)
    except BaseException:
        return {"error": traceback.format_exc()}
    finally:
        sys.setprofile(None)
    values = {name: plain(value) for name, value in names.items() if name not in given}
    idle = [inner.co_name for inner in below(code) if inner not in called]
    return {"values": values, "printed": printed.getvalue(), "idle": idle}


def below(code: CodeType) -> list[CodeType]:
    """Return the code of all functions and classes in a piece of code."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return inner + [deeper for one in inner for deeper in below(one)]


def plain(value: Any) -> Any:
    """Return a value as JSON has it; of what is no data, only its kind."""
    import torch

    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), plain(value.detach().cpu().tolist())]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (torch.device, torch.dtype)):
        return str(value)
    return "(an object)"


if __name__ == "__main__":
    examples_file, results_file, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    Path(results_file).write_text(json.dumps(run_all(json.loads(Path(examples_file).read_text()))))
