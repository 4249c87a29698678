"""``npumigrate record``: a program with a recorder in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import typer

from migrator.cli.ending import CANNOT_RUN, NO_PROGRAM, say, stop
from migrator.cli.options import Given
from migrator.language import _


def record(given: Given) -> None:
    """Run a program and record the results of its modules and APIs in the first steps.

    Its code stays as it is: Python loads the recorder in each process that imports torch. What it
    prints and its exit status are its own. Record the original and the migrated program, then run
    npumigrate compare.

    Exit status: that of the program; 2 usage error; 126 it cannot run here; 127 no such program.
    """
    from migrator.compare.starting import environment, prepare_folder, write_about
    from migrator.emulator.launch import run

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
    prepare_folder(folder)
    env = environment(env, folder, given.steps, given.level, given.same_random, given.seed)
    try:
        write_about(folder, given.command, how, None)
        code = run([program, *given.command[1:]], env)
        write_about(folder, given.command, how, code)
    except OSError as error:
        stop("cannot start {command}: {strerror}", CANNOT_RUN, command=program, strerror=error.strerror)
    count = len([*folder.glob("process-*.jsonl.gz")])
    if count:
        say(_("recorded in {folder} (processes: {count})", folder=folder, count=count))
    else:
        say(_("nothing was recorded: no process called a torch module or printed a number"))
    raise typer.Exit(code)
