"""``npumigrate emulate``: a program on emulated NPUs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from migrator.cli.ending import CANNOT_RUN, NO_PROGRAM, say, stop
from migrator.cli.options import Given
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.emulator.build import Built
    from migrator.emulator.installed import Installed

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def emulate(given: Given) -> None:
    """Run a program and its child processes on emulated Ascend NPUs.

    The installed torch_npu runs over an emulated CANN; numbers and speed are those of the CPU. Without
    a program: show what is installed and what to install.

    The program runs with your permissions, or with --sandbox in bubblewrap: no network, and it writes
    in this folder only.

    Exit status: that of the program; 2 usage error; 126 the emulator cannot run here;
    127 no such program.
    """
    if given.versions:
        _show_versions()
        return
    if not given.command:
        _show_installed()
        return
    from migrator.emulator.launch import Machine, environment, find, run

    command, soc = given.command, checked_soc(given.soc)
    folder = None if given.report is None else given.report.absolute()
    project = None if folder is None else Path.cwd()
    rest = {"insight": project, "strict": given.strict, "races": given.races}
    rest["sandbox"] = checked_sandbox(given.sandbox)
    machine = Machine(given.devices, soc, size(given.memory), folder, given.cpu_random, **rest)
    old = {path.name for path in folder.iterdir()} if folder is not None and folder.is_dir() else set()
    installed, built = prepare(given.torch)
    env = environment(machine, built, installed, os.environ)
    program = find(command[0], env)
    if program is None:
        stop("command not found: {command}", NO_PROGRAM, command=command[0])
    try:
        code = run([program, *command[1:]], env)
    except OSError as error:
        stop("cannot start {command}: {strerror}", CANNOT_RUN, command=command[0], strerror=error)
    if folder is not None and folder.is_dir() and project is not None:
        write_insight(folder, folder, project, ("", installed.torch), soc, old, shown=False)
    raise typer.Exit(code)


def prepare(torch: Optional[str] = None) -> tuple[Installed, Built]:
    """Return what is installed and the libraries, built if need be; stop where the emulator cannot run.

    With a release of torch: of an environment with that one, which is made if need be.
    """
    from migrator.cli.progress import ProgressBar
    from migrator.emulator.build import build
    from migrator.emulator.installed import EmulatorError, look, tried

    try:
        python = None
        if torch:
            from migrator.api_support.companions import of_torch, recommended
            from migrator.emulator.environments import python_with

            known = {(row.torch, row.torch_npu) for row in tried()}
            ran = (one for one in of_torch(torch) if (one.torch, one.torch_npu) in known)
            release = next(ran, recommended(torch))
            if release is None:
                stop("--torch: torch_npu has no release for torch {torch}", torch=torch)
            python = python_with(release, say)
        installed = look(python)
        return installed, build(installed, say, ProgressBar(shown=True))
    except EmulatorError as error:
        stop(str(error), CANNOT_RUN)


def write_insight(
    notes: Path,
    folder: Path,
    root: Path,
    versions: tuple[str, str],
    soc: str,
    old: Container[str] = (),
    shown: bool = True,
) -> None:
    """Judge what was recorded in ``notes``, write the reports to a folder, and print the first rows.

    ``versions`` are the torch that the project is for, empty if not known, and the one that ran.
    """
    from rich.console import Console

    from migrator.insight.report import find_rows, recorded_run, show_insight, write_reports

    try:
        run = recorded_run(notes, *versions, soc, old)
    except (ValueError, LookupError, TypeError) as error:  # the program has ended; its status stays
        say(_("insight: cannot read the records in {notes}: {error}", notes=notes, error=error))
        return
    if not run.processes:
        if shown:
            say(_("insight: nothing recorded: no process imported torch_npu and ended normally"))
        return
    rows = find_rows(run, root)
    try:
        write_reports(folder, run, rows)
    except OSError as error:
        say(_("insight: cannot write to {folder}: {strerror}", folder=folder, strerror=error.strerror))
        return
    if shown:
        where = os.path.relpath(folder)
        where = str(folder) if where.startswith("..") else where
        show_insight(Console(stderr=True, highlight=False), run, rows, where)


def _show_versions() -> None:
    from migrator.emulator.installed import tried, version_of

    here = [(version_of(name) or "").partition("+")[0] for name in ("torch", "torch_npu")]
    said = N_(
        "torch {torch:<7} torch_npu {npu:<13} Python {python} {machine:<15} {build:<5} {date} {ran}{mark}"
    )
    for row in tried():
        mark = "   " + _("installed") if [row.torch, row.torch_npu] == here else ""
        cells = {**row._asdict(), "npu": row.torch_npu, "build": f"+{row.build}"}
        typer.echo(_(said, **cells, mark=mark))


def _show_installed() -> None:
    from migrator.emulator.build import built, cache_folder
    from migrator.emulator.installed import EmulatorError, find_compiler, look, troubles, version_of

    compiler = find_compiler()
    found = {name: version_of(name) for name in ("torch", "torch_npu", "torchvision")}
    for name, version in found.items():
        typer.echo(f"{name:<12} {version or _('not installed')}")
    typer.echo(f"{'compiler':<12} {' '.join(compiler) if compiler else _('not installed')}")
    missing = troubles(found["torch"], found["torch_npu"], compiler)
    try:
        ready = built(look()) if not missing else None
    except EmulatorError as error:
        missing = [str(error)]
    for trouble in missing:
        typer.echo(f"missing: {trouble}")
    if missing:
        return
    typer.echo(
        f"{'libraries':<12} "
        + (str(ready.folder) if ready else _("built at first run in {folder}", folder=cache_folder()))
    )
    typer.echo(_("ready: npumigrate emulate -- python train.py"))


def checked_sandbox(wanted: bool) -> bool:
    """Return whether a sandbox is wanted; stop where bubblewrap cannot make one."""
    if wanted:
        asked = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-net", "true"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False)
        except OSError:
            stop("--sandbox needs bubblewrap: apt-get install bubblewrap", CANNOT_RUN)
        if done.returncode:
            stop("--sandbox: bubblewrap fails here: {error}", CANNOT_RUN, error=done.stderr.strip())
    return wanted


def checked_soc(name: str) -> str:
    """Return the name of a chip; stop where it is none."""
    if not re.fullmatch(r"Ascend\w[\w-]*", name):
        stop("--soc: {name!r} is not an Ascend chip name, such as Ascend910B2", name=name)
    return name


def size(text: str) -> int:
    """Return the bytes of a text such as 64GiB; stop where it is no size."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    count = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if count < 1 << 20:
        stop("--memory: {text!r} is not a size of at least 1MiB, such as 64GiB", text=text)
    return count
