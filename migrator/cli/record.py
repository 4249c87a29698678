"""``npumigrate record``: a program with a recorder in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import typer

from migrator import __version__
from migrator.cli.ending import CANNOT_RUN, NO_PROGRAM, say, stop
from migrator.cli.options import Given
from migrator.language import N_, _


def record(given: Given) -> None:
    """Run a program and record the results of its modules and APIs in the first steps.

    Its code stays as it is: Python loads the recorder in each process that imports torch. What it
    prints and its exit status are its own. Record the original and the migrated program, then run
    npumigrate compare.

    Exit status: that of the program; 2 usage error; 126 it cannot run here; 127 no such program.
    """
    from migrator.compare.reading import BOOTSTRAP
    from migrator.emulator.launch import in_front, run

    how = given.how or "npu"
    if not given.command:
        stop("no program: npumigrate record -o TRACE -- python train.py")
    env = dict(os.environ)
    if how != "npu":
        from migrator.cli.emulate import prepare
        from migrator.emulator.launch import Machine, with_cuda_on_cpu
        from migrator.emulator.launch import environment as emulated

        installed, built = prepare()
        env = emulated(Machine(given.devices), built, installed, os.environ)
        env = with_cuda_on_cpu(env) if how == "cpu" else env
    program = shutil.which(given.command[0], path=env.get("PATH"))
    if program is None:
        stop("command not found: {command}", NO_PROGRAM, command=given.command[0])
    folder: Path = given.output
    _prepare(folder)
    own = {"": str(folder.absolute()), "_STEPS": str(given.steps), "_LEVEL": given.level}
    own |= {"_RANDOM": "same"} if given.same_random else {}
    own |= {} if given.seed is None else {"_SEED": str(given.seed)}
    env = {name: value for name, value in env.items() if not name.startswith("NPUMIGRATE_RECORD")}
    env |= {f"NPUMIGRATE_RECORD{name}": value for name, value in own.items()}
    env["PYTHONPATH"] = in_front(BOOTSTRAP, env.get("PYTHONPATH"))
    try:
        _write_about(folder, given.command, how, None)
        code = run([program, *given.command[1:]], env)
        _write_about(folder, given.command, how, code)
    except OSError as error:
        stop("cannot start {command}: {strerror}", CANNOT_RUN, command=program, strerror=error)
    count = len([*folder.glob("process-*.jsonl.gz")])
    if count:
        say(_("recorded in {folder} (processes: {count})", folder=folder, count=count))
    else:
        say(_("nothing was recorded: no process called a torch module or printed a number"))
    raise typer.Exit(code)


def _prepare(folder: Path) -> None:
    """Make the folder of a trace, or empty it of an older one; stop where that cannot be."""
    from migrator.compare.reading import RUN

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.name != RUN and not path.match("process-*.jsonl.gz"):
                said = N_("{folder} contains files other than a trace: {name}")
                stop(said, folder=folder, name=path.name)
        for old in folder.iterdir():
            old.unlink()
    except OSError as error:
        stop("{folder}: {why}", folder=folder, why=error)


def _write_about(folder: Path, command: Sequence[str], how: str, code: int | None) -> None:
    """Write what was run into a trace, and its exit code once it is known. Raises OSError."""
    from migrator.compare.reading import RUN

    about = {"schema": 1, "npumigrate": __version__, "command": [*command], "with": how, "code": code}
    (folder / RUN).write_text(json.dumps(about) + "\n", encoding="utf-8")
