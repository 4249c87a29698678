"""A verification from end to end: the project on emulated NPUs, the original on the CPU, the verdict."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Optional

from migrator.emulator.build import Built
from migrator.emulator.installed import Installed
from migrator.emulator.launch import Machine, environment, find, with_cuda_on_cpu
from migrator.verify import processes
from migrator.verify.numbers import compare
from migrator.verify.observed import read_processes, read_reached, write_places
from migrator.verify.original import command_for
from migrator.verify.places import find_places
from migrator.verify.verdict import Original, Verdict, judge


class NoProgram(Exception):  # noqa: N818
    """The program that is to run is not there."""


@dataclass(frozen=True)
class Job:
    """What to run. ``original`` is run, too, and compared, where it is given; ``timeout`` is in seconds."""

    migrated: Path
    command: Sequence[str]
    machine: Machine
    original: Optional[Path]
    timeout: Optional[float]
    tolerance: float


def verify(job: Job, installed: Installed, built: Built, say: Callable[[str], None]) -> Verdict:
    """Run, and judge. ``say`` gets a line for each run where there are two.

    Raises NoProgram, and OSError where the program cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="npumigrate-verify-") as name:
        notes = Path(name)
        places = find_places(job.migrated)
        write_places(notes / "places.json", places)
        watched = replace(job.machine, report=notes, places=notes / "places.json")
        env = environment(watched, built, installed, os.environ)
        program = find(job.command[0], env, job.migrated)
        if program is None:
            raise NoProgram
        if job.original is not None:
            say("running the migrated project on emulated NPUs")
        command = [program, *job.command[1:]]
        ended = processes.run(command, env, job.migrated, job.timeout, keep=job.original is not None)
        noted = read_processes(notes)
        reached = read_reached(notes, places, noted)
        original = None
        if job.original is not None and ended.well:
            say(f"running the original on the CPU: {job.original}")
            unwatched = replace(job.machine, report=notes / "original")
            env = with_cuda_on_cpu(environment(unwatched, built, installed, os.environ))
            original = _run_original(job, job.original, env, notes / "original", ended.output)
        return judge(ended, noted, reached, places, original)


def _run_original(job: Job, source: Path, env: dict[str, str], notes: Path, printed: str) -> Original:
    """Run the original where it lies, with the CPU in the place of CUDA devices."""
    folder = source if source.is_dir() else source.parent
    first, *rest = command_for(job.command, job.migrated, folder)
    command = [find(first, env, folder) or first, *rest]
    ended = processes.run(command, env, folder, job.timeout, keep=True, shown=False)
    comparison = compare(ended.output, printed, job.tolerance) if ended.well else None
    return Original(str(source), ended, tuple(read_processes(notes)), comparison)
