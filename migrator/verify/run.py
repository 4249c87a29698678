"""A verification from end to end: the project on emulated NPUs, the original on the CPU, the verdict."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional

from migrator.api_support.versions import newest
from migrator.compare.printed import compare
from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.data_folders import reports_yaml
from migrator.emulator.build import Built
from migrator.emulator.installed import Installed
from migrator.emulator.launch import Machine, environment, find, with_cuda_on_cpu
from migrator.files.discover import discover
from migrator.files.document import Document
from migrator.files.source import Source, text_below
from migrator.language import N_, MessageError, _
from migrator.launch.target import NAME as LAUNCHER
from migrator.launch.target import Start
from migrator.other_files.index import Word
from migrator.other_files.shell import listed
from migrator.project.parser_options import Option
from migrator.project.program_files import ProgramFiles
from migrator.project.programs import Programs
from migrator.project.project import merge_facts
from migrator.project.start_ways import start_ways
from migrator.report.log_file import inputs
from migrator.verify import observed, processes
from migrator.verify.diagnosis import read_failures, read_stacks, what_fails, what_waits
from migrator.verify.processes import Ended
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
    """How a run went: what was missing is looked for where it failed, or did nothing for a while."""
    failures, lost = (tuple(read_failures(notes, kind)) for kind in ("failure", "lost"))
    stacks = tuple(read_stacks(notes))
    lack = entry = None
    if ended.timed_out and ended.still >= _STILL:
        lack = what_waits(stacks, folder)
    elif ended.code and not ended.timed_out and not ended.interrupted:
        lack, entry = what_fails(failures, folder)
    return Course(failures, lack, tuple(observed.read_bounded(notes)), lost, stacks, explained=entry)


# The rules by which the options and the variables of a command change.
_OF_COMMANDS = ("NPU409", "NPU410", "NPU412")
_OF_A_RANK = ("%RANK%", "%LOCAL_RANK%")


def command_of(start: Start, folder: Path, devices: int) -> list[str]:
    """The command that starts a project as its launcher does, with a rank for each NPU."""
    way = start.way
    options = list(way.options) if way else []
    per_rank = any(mark in option for mark in _OF_A_RANK for option in options)
    if (folder / LAUNCHER).is_file() and (per_rank or (way is not None and way.variables)):
        return ["bash", LAUNCHER]  # which knows how to give each rank its own
    values = {
        "%NPROC%": devices,
        "%WORLD_SIZE%": devices,
        "%NNODES%": 1,
        "%NODE_RANK%": 0,
        "%MASTER_ADDR%": "127.0.0.1",
        "%MASTER_PORT%": free_port(),
    }
    for mark, value in values.items():
        options = [option.replace(mark, str(value)) for option in options]
    program = ["-m", start.module] if start.module else [start.entry]
    if way is not None and way.ranks == "launcher" and devices > 1:
        return ["torchrun", f"--nproc_per_node={devices}", f"--master_port={free_port()}", *program, *options]
    return ["python", *program, *options]


def as_migrated(command: Sequence[str], folder: Path) -> list[str]:
    """A command with devices, backends and variables of NPUs, where the program that it starts takes them."""
    project = replace(merge_facts(()), programs=_programs(folder))
    rules = rules_for(Settings(newest().text, select=_OF_COMMANDS))
    line = Source("command.sh", shlex.join(command) + "\n", type="shell")
    text = check(Document(b"", line), rules, project).text
    return shlex.split(text) if text is not None else [*command]


def _programs(folder: Path) -> Programs:
    every = (each for each in discover(folder) if each.kind == "python" and not each.excluded)
    return Programs({each.name: each.path for each in every})


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def entry_of(command: Sequence[str], folder: Path) -> tuple[str, int]:
    """The Python file that a command starts, empty where none is seen, and the place of its first word."""
    programs, content = _programs(folder), listed([Word(word, (0, 0)) for word in command], (0, 0))
    for each in content.commands[0].programs:
        own = os.path.basename(each.name) == LAUNCHER
        if entry := launched(folder) if own else programs.started("", content, each):
            return entry, each.words[0]
    return "", len(command)


def launched(folder: Path) -> str:
    """The file that a project's own launcher starts; empty where there is none."""
    lines = (text_below(folder, LAUNCHER) or "").splitlines()
    named = (line.partition("=")[2] for line in lines if line.startswith("entry="))
    return next((shlex.split(name)[0] for name in named), "")


def shrink(command: Sequence[str], folder: Path, devices: int) -> tuple[list[str], tuple[str, ...]]:
    """A command with batch size and data workers bounded by its known options, and what these are now."""
    entry, begin = entry_of(command, folder)
    way = start_ways([entry], partial(text_below, folder), mended=False).get(entry) if entry else None
    ranks = (
        devices if way is not None and way.ranks == "program" else 1
    )  # that share what one process is given
    found = list(_found(entry, folder, ranks)) if entry else []
    head, given = list(command[:begin]), list(command[begin:])
    said = []
    for option, most in found:
        word = _given(given, option)
        now = option.default if word is None else word[2]
        with suppress(TypeError, ValueError):
            if now is not None and int(str(now)) <= most:
                continue
        if word is None:
            given += [option.name, str(most)]
        else:
            given[word[0]] = f"{word[1]}{most}"
        said.append(f"{option.name} {most} (was {now if now is not None else 'not given'})")
    if said and os.path.basename(head[-1]) == LAUNCHER and "--" not in given:
        head.append("--")
    return [*head, *given], tuple(said)


def _found(entry: str, folder: Path, ranks: int) -> Iterator[tuple[Option, int]]:
    files = ProgramFiles(partial(text_below, folder)).reached(entry)
    table = reports_yaml("shrink.yaml")
    most = {
        name: table[kind]["most"] * (ranks if kind == "batch" else 1)
        for kind in ("batch", "workers")
        for name in table[kind]["names"]
    }
    options = [option for rows in files.values() for option in rows.options]
    for full in (full for rows in files.values() for full in rows.names):
        options += [Option(name, (name,), name.lstrip("-")) for name in table["libraries"].get(full, ())]
    seen: set[str] = set()
    for option in options:
        plain = (each.lstrip("-").replace("-", "_").lower() for each in option.names)
        name = next((each for each in plain if each in most), "")
        if name and not option.flag and option.name not in seen:
            seen.add(option.name)
            yield option, most[name]


def _given(command: list[str], option: Option) -> tuple[int, str, str] | None:
    """Which word of a command gives an option its value, what stands before it there, and the value."""
    for place, word in enumerate(command):
        name, sign, value = word.partition("=")
        if name in option.names and sign:
            return place, f"{name}=", value
        if word in option.names and place + 1 < len(command):
            return place + 1, "", command[place + 1]
    return None
