"""The program that a command starts, what it takes instead of CUDA, and what makes it small: ``--shrink``."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from migrator.api_support.versions import newest
from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.data_folders import reports_yaml
from migrator.files.discover import discover
from migrator.files.document import Document
from migrator.files.source import Source, text_below
from migrator.launch.script import NAME as LAUNCHER
from migrator.launch.target import Start
from migrator.other_files.index import Word
from migrator.other_files.shell import listed
from migrator.project.parser_options import Option
from migrator.project.program_files import ProgramFiles
from migrator.project.programs import Programs
from migrator.project.project import merge_facts
from migrator.project.start_ways import start_ways

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
