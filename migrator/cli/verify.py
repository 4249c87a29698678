"""``npumigrate verify``: does a migrated project run on NPUs, to its end, with the original's numbers?"""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from migrator.cli.emulate import checked_soc, prepare, size
from migrator.cli.ending import CANNOT_RUN, NO_PROGRAM, say, stop
from migrator.cli.options import Devices, Memory, Soc
from migrator.cli.values import Several


def verify(
    migrated: Path = typer.Argument(..., metavar="MIGRATED_DIR", help="A result of npumigrate."),
    command: Several = typer.Argument(None, metavar="-- CMD…", help="The program; it runs in MIGRATED_DIR."),
    devices: Devices = 8,
    soc: Soc = "Ascend910B2",
    memory: Memory = "64GiB",
    json_file: Optional[Path] = typer.Option(
        None, "--json", metavar="FILE", help="Write the verdict, with all details, as JSON."
    ),
    timeout: Optional[float] = typer.Option(
        None, "--timeout", metavar="S", min=0.1, help="End a run after S seconds."
    ),
    compare_cpu: bool = typer.Option(
        False, "--compare-cpu", help="Run the original on the CPU as well, and compare what both print."
    ),
    original: Optional[Path] = typer.Option(
        None, "--original", metavar="DIR", help="The original, where it is no longer at its place."
    ),
    tolerance: float = typer.Option(
        1e-3, "--tolerance", metavar="T", min=0.0, help="Largest relative difference of two numbers."
    ),
    seed: int = typer.Option(0, "--seed", metavar="N", help="For programs that set no seed (--compare-cpu)."),
) -> None:
    """Run a migrated project on emulated NPUs, and report what the run proves.

    The program's own output stays what it is; the verdict follows on the standard error.

    Exit status: 0 it ran on the NPUs to its end (and its numbers are the original's);
    1 the program failed or ran out of time; 2 usage error; 3 it ended, but not all of it ran
    on NPUs; 4 the numbers differ; 5 they could not be compared; 126 the emulator cannot
    run here; 127 no such program; 130 interrupted.
    """
    if not migrated.is_dir():
        stop(f"no such folder: {migrated}")
    if not command:
        stop("no program: npumigrate verify MIGRATED_DIR -- python train.py")
    if original is not None and not compare_cpu:
        stop("--original is for --compare-cpu")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        stop(f"--json: no such folder: {json_file.absolute().parent}")
    if json_file is not None and json_file.is_dir():
        stop(f"--json: a folder, not a file: {json_file}")
    from migrator.emulator.launch import Machine
    from migrator.verify.run import NoProgram
    from migrator.verify.run import verify as run

    machine = Machine(
        devices,
        checked_soc(soc),
        size(memory),
        random_from_cpu=compare_cpu,
        seed=seed if compare_cpu else None,
    )
    source = _original(migrated, original) if compare_cpu else None
    emulator = prepare()
    try:
        verdict = run(migrated.resolve(), command, machine, emulator, source, timeout, tolerance, say)
    except NoProgram:
        stop(f"command not found: {command[0]}", NO_PROGRAM)
    except OSError as error:
        stop(f"cannot start {command[0]}: {error.strerror}", CANNOT_RUN)
    from rich.console import Console

    from migrator.verify.terminal import show_verdict

    if verdict.original and not verdict.original.ended.well:
        for line in verdict.original.ended.output.rstrip().splitlines()[-15:]:
            typer.echo(f"  {line}", err=True)
    show_verdict(Console(stderr=True, highlight=False), verdict)
    if json_file is not None:
        from migrator.files.errors import CannotWrite
        from migrator.files.replacing import replace_file
        from migrator.verify.as_json import verdict_text

        shown = {"devices": devices, "soc": soc, "memory": machine.memory}
        text = verdict_text(verdict, str(migrated), command, shown)
        try:
            replace_file(json_file, text.encode("utf-8", "backslashreplace"))
        except CannotWrite as error:
            stop(f"--json: {error}")
    raise typer.Exit(verdict.exit_code)


def _original(migrated: Path, given: Path | None) -> Path:
    from migrator.verify.run import OriginalError, find_original

    if given is not None:
        if not given.exists():
            stop(f"--original: no such folder: {given}")
        return given
    try:
        return find_original(migrated)
    except OriginalError as error:
        stop(str(error))
