"""A verification from end to end: the project on emulated NPUs, the original on the CPU, the verdict."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional

from migrator.emulator.build import Built
from migrator.emulator.installed import Installed
from migrator.emulator.launch import Machine, environment, find, with_cuda_on_cpu
from migrator.verify import processes
from migrator.verify.numbers import compare
from migrator.verify.observed import read_processes, read_reached, write_places
from migrator.verify.places import find_places
from migrator.verify.verdict import Original, Verdict, judge

_REPORTS = "migration_report"
_INPUT = re.compile(r" INFO input (.+); Settings\(")


class NoProgram(Exception):  # noqa: N818
    """The program that is to run is not there."""


class OriginalError(Exception):
    """The original cannot be found; the text says what to do."""


def migrated_for(migrated: Path) -> str:
    """The torch version that a result of npumigrate was migrated for; empty where its reports are missing."""
    try:
        return str(_summary(migrated)["torch"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _summary(migrated: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((migrated / _REPORTS / "summary.json").read_text(encoding="utf-8"))
    return content


def find_original(migrated: Path) -> Path:
    """Return the folder or file that ``migrated`` was made from.

    The log of the migration knows its path; ``summary.json`` its name, which is then looked for beside
    the result and beside the folder that the result is in.

    Raises OriginalError.
    """
    reports = migrated / _REPORTS
    try:
        name = str(_summary(migrated)["options"]["input"])
    except (OSError, ValueError, KeyError, TypeError):
        raise OriginalError(
            f"{migrated} has no {_REPORTS}/summary.json: --original DIR names the original"
        ) from None
    candidates = [migrated.parent / name, migrated.parent.parent / name]
    try:
        paths = _INPUT.findall((reports / "npumigrate.log").read_text(encoding="utf-8"))
        candidates = [Path(path) for path in reversed(paths)] + candidates
    except OSError:
        pass
    for path in candidates:
        if path.exists() and path.resolve() != migrated.resolve():
            return path
    raise OriginalError(f"the original {name!r} of {migrated} is not to be found: --original DIR names it")


def verify(
    migrated: Path,
    command: Sequence[str],
    machine: Machine,
    emulator: tuple[Installed, Built],
    original: Optional[Path],
    timeout: Optional[float],
    tolerance: float,
    say: Callable[[str], None],
) -> Verdict:
    """Run a command in a migrated project, and judge.

    ``original`` is run, too, where it lies, and compared, where it is given; ``timeout`` is in seconds.
    ``say`` gets a line for each run where there are two.

    Raises NoProgram, and OSError where the program cannot be started.
    """
    installed, built = emulator
    with tempfile.TemporaryDirectory(prefix="npumigrate-verify-") as name:
        notes = Path(name)
        places = find_places(migrated)
        write_places(notes / "places.json", places)
        watched = replace(machine, report=notes, places=notes / "places.json")
        env = environment(watched, built, installed, os.environ)
        program = find(command[0], env, migrated)
        if program is None:
            raise NoProgram
        if original is not None:
            say("running the migrated project on emulated NPUs")
        ended = processes.run(
            [program, *command[1:]], env, migrated, timeout, keep=original is not None, notes=notes
        )
        noted = read_processes(notes)
        reached = read_reached(notes, places, noted)
        compared = None
        if original is not None and ended.well:
            say(f"running the original on the CPU: {original}")
            unwatched = replace(machine, report=notes / "original")
            env = with_cuda_on_cpu(environment(unwatched, built, installed, os.environ))
            folder = original if original.is_dir() else original.parent
            first, *rest = _command_for(command, migrated, folder)
            second = [find(first, env, folder) or first, *rest]
            cpu = processes.run(second, env, folder, timeout, keep=True, shown=False, notes=notes)
            comparison = compare(cpu.output, ended.output, tolerance) if cpu.well else None
            compared = Original(str(original), cpu, tuple(read_processes(notes / "original")), comparison)
        verdict = judge(ended, noted, reached, places, compared)
        return replace(verdict, torch=installed.torch, migrated_for=migrated_for(migrated))


def _command_for(command: Sequence[str], migrated: Path, original: Path) -> list[str]:
    """A command with the paths into the result changed to those into the original."""
    found = str(migrated.resolve())
    return [
        part.replace(found, str(original.resolve()))
        if re.search(re.escape(found) + r"(?=$|/)", part)
        else part
        for part in command
    ]
