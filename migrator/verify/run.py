"""A verification from end to end: the project on emulated NPUs, the original on the CPU, the verdict."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional

from migrator.compare.printed import compare
from migrator.emulator.build import Built
from migrator.emulator.installed import Installed
from migrator.emulator.launch import Machine, environment, find, with_cuda_on_cpu
from migrator.language import N_, MessageError, _
from migrator.report.log_file import inputs
from migrator.verify import observed, processes
from migrator.verify.diagnosis import read_failures, read_stacks, what_fails, what_waits
from migrator.verify.processes import Ended
from migrator.verify.started import as_migrated
from migrator.verify.verdict import Course, Original, Verdict, judge

_STILL = 5.0  # seconds without any work, after which a program waits, and does not compute
_REPORTS = "migration_report"


class NoProgram(Exception):  # noqa: N818
    """The program that is to run is not there."""


def migrated_for(migrated: Path) -> str:
    """The torch version that a result of npumigrate was migrated for; empty where its reports are missing."""
    return _noted(migrated, "torch") or ""


def _noted(migrated: Path, *keys: str) -> str | None:
    """What the summary of a migration has under a key, and one in that; None where it is missing."""
    try:
        content: Any = json.loads((migrated / _REPORTS / "summary.json").read_text(encoding="utf-8"))
        for key in keys:
            content = content[key]
        return str(content)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_original(migrated: Path) -> Path:
    """Return the folder or file that ``migrated`` was made from.

    The log of the migration knows its path; ``summary.json`` its name, which is then looked for beside
    the result and beside the folder that the result is in.

    Raises MessageError.
    """
    name = _noted(migrated, "options", "input")
    if name is None:
        why = N_("{migrated} has no {reports}/summary.json: give the original with --original DIR")
        raise MessageError(why, migrated=migrated, reports=_REPORTS)
    for path in (*inputs(migrated / _REPORTS), migrated.parent / name, migrated.parent.parent / name):
        if path.exists() and path.resolve() != migrated.resolve():
            return path
    why = N_("the original {name!r} of {migrated} was not found: give it with --original DIR")
    raise MessageError(why, name=name, migrated=migrated)


def verify(
    migrated: Path,
    command: Sequence[str],
    machine: Machine,
    emulator: tuple[Installed, Built],
    original: Optional[Path],
    timeout: Optional[float],
    tolerance: float,
    say: Callable[[str], None],
    patience: Optional[float] = None,
    insight: Optional[Callable[[Path, str, str], None]] = None,
    watch: Sequence[observed.Place] = (),
) -> Verdict:
    """Run a command in a migrated project, and judge.

    ``original`` is run, too, where it lies, and compared, where it is given; ``timeout`` is in
    seconds, and so is ``patience`` with a program that does nothing. ``say`` gets a line for each run
    where there are two, and one where the command names devices or backends of CUDA for which the migrated
    program takes others, which it gets; the original gets what is given. ``insight`` is given the folder of
    what was recorded, the torch that the project is for, and the one that ran, while the folder is there.
    Which places of ``watch`` were evaluated is in the course of the verdict.

    Raises NoProgram, and OSError where the program cannot be started.
    """
    installed, built = emulator
    with tempfile.TemporaryDirectory(prefix="npumigrate-verify-") as name:
        notes = Path(name)
        places = observed.find_places(migrated)
        every = sorted([*places, *watch], key=lambda each: each.path)
        observed.write_places(notes / "places.json", every)
        watched = replace(machine, report=notes, places=notes / "places.json", watched=True)
        watched = replace(watched, insight=migrated if insight else None)
        env = environment(watched, built, installed, os.environ)
        own = as_migrated(command, migrated)
        program = find(own[0], env, migrated)
        if program is None:
            raise NoProgram
        if own != [*command]:
            say(_("the migrated program accepts other values: {command}", command=shlex.join(own)))
        if original is not None:
            say(_("running the migrated project on emulated NPUs"))
        keep = original is not None
        ended = processes.run(
            [program, *own[1:]], env, migrated, timeout, keep, notes=notes, patience=patience
        )
        noted = observed.read_processes(notes)
        course = _course(ended, notes, migrated)
        reached = observed.read_reached(notes, every, noted)
        evaluated = frozenset((each.place.path, each.place.span) for each in reached)
        course = replace(course, evaluated=evaluated)
        reached = [each for each in reached if each.place not in watch]
        compared = None
        if original is not None and (ended.well or course.only_followed(ended)):
            say(_("running the original on the CPU: {original}", original=original))
            unwatched = replace(machine, report=notes / "original", watched=True)
            env = with_cuda_on_cpu(environment(unwatched, built, installed, os.environ))
            folder = original if original.is_dir() else original.parent
            # The paths into the result are changed to those into the original.
            there, inside = str(folder.resolve()), re.escape(str(migrated.resolve())) + r"(?=$|/)"
            first, *rest = (re.sub(inside, lambda _: there, part) for part in command)
            second = [find(first, env, folder) or first, *rest]
            cpu = processes.run(second, env, folder, timeout, True, False, notes, patience)
            followed = _course(cpu, notes / "original", folder).only_followed(cpu)
            comparison = compare(cpu.output, ended.output, tolerance) if cpu.well or followed else None
            compared = Original(
                str(original), cpu, tuple(observed.read_processes(notes / "original")), comparison
            )
        if insight is not None:
            insight(notes, migrated_for(migrated), installed.torch)
        verdict = judge(ended, noted, reached, places, compared, course)
        return replace(verdict, torch=installed.torch, migrated_for=migrated_for(migrated))


def _course(ended: Ended, notes: Path, folder: Path) -> Course:
    """How a run went: what is lacking is looked for where it failed, or did nothing for a while."""
    failures, lost = (tuple(read_failures(notes, kind)) for kind in ("failure", "lost"))
    stacks = tuple(read_stacks(notes))
    lack = entry = None
    if ended.timed_out and ended.still >= _STILL:
        lack = what_waits(stacks, folder)
    elif ended.code and not ended.timed_out and not ended.interrupted:
        lack, entry = what_fails(failures, folder)
    return Course(failures, lack, tuple(observed.read_bounded(notes)), lost, stacks, explained=entry)
