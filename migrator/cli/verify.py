"""``npumigrate verify``: does a migrated project run on NPUs, to its end, with the original's numbers?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from migrator.cli.emulate import checked_sandbox, checked_soc, prepare, size, write_insight
from migrator.cli.ending import CANNOT_RUN, NO_PROGRAM, check_folder, say, stop
from migrator.cli.options import Given
from migrator.cli.report import chosen_formats, write_reports
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.verify.repair.loop import Repaired
    from migrator.verify.verdict import Verdict


def verify(given: Given) -> None:
    """Run a migrated project on emulated NPUs, and report what the run proves.

    The program's output is passed through; the verdict follows on standard error.

    The program runs with your permissions, or with --sandbox in bubblewrap: no network, and it writes
    in MIGRATED only.

    Exit status: 0 ran to its end on the NPUs (and its numbers match the original's); 1 the program
    failed or timed out; 2 usage error; 3 ended, but not all of it ran on NPUs; 4 the numbers differ; 5
    the numbers could not be compared; 6 blocked by the environment, not by NPUs (data, a port, a rank,
    input); 126 the emulator cannot run here; 127 no such program; 130 interrupted.
    """
    migrated, original, json_file = given.migrated, given.original, given.json_file
    check_folder(migrated)
    built = chosen_formats(given.formats)
    if built and not (migrated / "migration_report/summary.json").is_file():
        why = N_("--format is for results of migrate: {migrated} has no migration_report/summary.json")
        stop(why, migrated=migrated)
    if given.repair and not (migrated / "migration_report").is_dir():
        why = N_("--repair changes a result of npumigrate, and {migrated} has no migration_report")
        stop(why, migrated=migrated)
    if original is not None and not given.compare_cpu:
        stop("--original needs --compare-cpu")
    if json_file is not None and json_file.is_dir():
        stop("--json: expected a file, not a folder: {json_file}", json_file=json_file)
    check_folder(json_file and json_file.absolute().parent, "--json: ")
    from migrator.emulator.launch import Machine
    from migrator.verify.repair.fixes import watched
    from migrator.verify.run import NoProgram, find_original
    from migrator.verify.run import verify as run

    devices, soc = given.devices, checked_soc(given.soc)
    seed = given.seed if given.compare_cpu else None
    rest = {"random_from_cpu": given.compare_cpu, "seed": seed, "sandbox": checked_sandbox(given.sandbox)}
    machine = Machine(devices, soc, size(given.memory), steps=given.steps, **rest)
    folder = migrated.resolve()
    command = given.command or _started(folder, devices)
    set_to: tuple[str, ...] = ()
    if given.shrink:
        from migrator.verify.run import shrink as shrunk

        command, set_to = shrunk(command, folder, devices)
        for line in set_to or (
            _("nothing to shrink: no known option for batch size or workers, or all are small already"),
        ):
            say(_("--shrink sets {line}", line=line))
    if given.version and not given.insight:
        stop("--version needs --insight")
    source = None
    if given.compare_cpu:
        check_folder(original, "--original: ")
        source = original or find_original(migrated)
    emulator = prepare(given.torch)

    def run_once() -> Verdict:
        writer = _writer(folder, soc, given.version) if given.insight else None
        times = given.timeout, given.tolerance, say, given.idle
        watch = watched(folder) if given.repair else ()
        found = run(folder, command, machine, emulator, source, *times, writer, watch)
        return replace(found, set_to=set_to)

    repaired = None
    try:
        if given.repair:
            from migrator.verify.repair.loop import repair as mend

            repaired = mend(folder, run_once, say)
        verdict = repaired.verdict if repaired else run_once()
    except NoProgram:
        stop("command not found: {command}", NO_PROGRAM, command=command[0])
    except OSError as error:
        stop("cannot start {command}: {strerror}", CANNOT_RUN, command=command[0], strerror=error)
    from rich.console import Console

    from migrator.verify.terminal import show_verdict

    if verdict.original and not verdict.original.ended.well:
        for line in verdict.original.ended.output.rstrip().splitlines()[-15:]:
            typer.echo(f"  {line}", err=True)
    show_verdict(Console(stderr=True, highlight=False), verdict)
    mended = _recorded(repaired, migrated) if repaired else None
    places = [json_file] if json_file is not None else []
    if built:
        from migrator.report.views.run import VERDICT

        places.append(migrated / "migration_report" / VERDICT)
    if places:
        from migrator.files.errors import CannotWrite
        from migrator.files.replacing import replace_file
        from migrator.verify.verdict import verdict_text

        shown = {"devices": devices, "soc": soc, "memory": machine.memory}
        text = verdict_text(verdict, str(migrated), command, shown, mended)
        try:
            for place in places:
                replace_file(place, text.encode("utf-8", "backslashreplace"))
        except CannotWrite as error:
            stop(f"--json: {error}" if json_file is not None else str(error))
    for file in write_reports(migrated, built) if built else ():
        typer.echo(f"Report   {file}", err=True)
    from migrator.cli.next_commands import after_verification
    from migrator.launch.target import NAME
    from migrator.report.terminal import show_next

    launcher = NAME if (migrated / NAME).is_file() else ""
    again = f"--devices {devices}{' --repair' if given.repair else ''}"
    commands = after_verification(migrated, launcher, verdict.exit_code, bool(built), again, command)
    show_next(Console(stderr=True, highlight=False), commands)
    raise typer.Exit(verdict.exit_code)


def _writer(folder: Path, soc: str, version: Optional[str]) -> Callable[[Path, str, str], None]:
    """What writes the insight reports, while what was recorded is there."""
    from migrator.api_support.versions import UnknownVersion, resolve

    try:
        asked = resolve(version).text if version else ""
    except UnknownVersion as error:
        stop(f"--version: {error}")

    def write(notes: Path, migrated_for: str, installed: str) -> None:
        reports = folder / "migration_report"
        place = reports if reports.is_dir() else folder / "npu_insight"
        write_insight(notes, place, folder, (asked or migrated_for, installed), soc)

    return write


def _recorded(repaired: Repaired, migrated: Path) -> dict[str, Any]:
    """Note a repair in the reports and on the terminal; return it for the JSON file."""
    from migrator.files.errors import CannotWrite
    from migrator.verify.repair.loop import as_json, lines, record

    for line in lines(repaired):
        say(f"repair: {line}")
    try:
        record(migrated / "migration_report", repaired)
    except (CannotWrite, OSError) as error:
        stop(f"--repair: {error}")
    return as_json(repaired)


def _started(folder: Path, devices: int) -> list[str]:
    """What the project's launcher would start; stop where no training script is found."""
    import shlex

    from migrator.cli.launch import find_start
    from migrator.files.errors import SourceError
    from migrator.verify.run import command_of, launched

    try:
        start = find_start(folder, launched(folder) or None)[0]
    except SourceError as error:
        reason = str(error).partition(": ")[0]  # what follows names an option of migrate
        why = N_("no program to run: {reason}. Name one: npumigrate verify MIGRATED_DIR -- python train.py")
        stop(why, reason=reason)
    command = command_of(start, folder, devices)
    say(_("starts {command}", command=shlex.join(command)))
    return command
