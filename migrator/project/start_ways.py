"""How the ranks of a program come to be: a launcher starts them, the program does, or it knows of none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, Optional

from migrator.light import Frozen
from migrator.names.outline import outline
from migrator.project.frameworks import listed
from migrator.project.module_names import Read
from migrator.project.parser_options import Option
from migrator.project.program_files import FileRows, KnownCall, ProgramFiles, Values, table


class StartWay(Frozen):
    """Who starts a program's ranks.

    With ``none`` it shows no use of ranks, ``unseen``: its training is in a package of which nothing is read.

    ``options`` are those that the program has to get from its launcher, with marks of
    ``reports/launcher/starts.yaml`` for their values. ``variables``: the launcher whose variables it reads.
    """

    ranks: Literal["launcher", "program", "none", "unseen"]
    options: tuple[str, ...] = ()
    variables: str = ""


class _Program(Frozen):
    """The files of a program, the options of its parsers by the names of their values, its calls of ranks."""

    every: ProgramFiles
    files: Mapping[str, FileRows]
    options: Mapping[str, Option]
    calls: tuple[KnownCall, ...]

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The places of the files, which are nearer to the program the earlier they come."""
        return {name: place for place, name in enumerate(self.files)}

    def reads(self, variables: Iterable[str]) -> bool:
        """Whether it holds the name of one of some variables as a string."""
        return any(not rows.variables.isdisjoint(variables) for rows in self.files.values())

    def option_of(self, values: Values) -> str:
        """The option that gives a value; empty without."""
        for value in values:
            if isinstance(value, str):
                found = value if value in self.options else ""
            else:
                callers = self.order.keys() & self.every.callers.get(value.function, ())
                in_order = sorted(callers, key=self.order.__getitem__)
                given = (self.every.given(name, value) for name in in_order)
                found = next(filter(None, map(self.option_of, given)), "")
            if found:
                return found
        return ""


def start_ways(
    entries: Iterable[str], read: Read, mended: bool, seen: Callable[[int], object] = lambda count: None
) -> dict[str, StartWay]:
    """How each of some scripts is started; ``read`` gives a file's text, None where there is none.

    ``mended``: the parsers' defaults of ``--local_rank`` come to read the environment. A script that cannot
    be parsed is left out. ``seen`` is called with the number of files that were read.
    """
    every = ProgramFiles(read, seen)
    reached = {entry: every.reached(entry) for entry in entries if _parses(read(entry))}
    named = _named_elsewhere({name: rows for files in reached.values() for name, rows in files.items()}, read)
    return {entry: _way(_program(every, files, named), mended) for entry, files in reached.items()}


def _parses(text: Optional[str]) -> bool:
    try:
        return text is not None and outline(text) is not None  # its rows are asked for next
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _named_elsewhere(files: Mapping[str, FileRows], read: Read) -> dict[str, Counter[str]]:
    """How often each file names each function that holds a call of interest, by function."""
    found: dict[str, Counter[str]] = {
        call.function: Counter() for rows in files.values() for call in rows.calls if call.function
    }
    for name in files if found else ():
        text = read(name) or ""
        for word in (each for each in found if each in text):
            count = len(re.findall(rf"\b{word}\b", text))
            if count:
                found[word][name] = count
    return found


def _program(every: ProgramFiles, files: Mapping[str, FileRows], named: dict[str, Counter[str]]) -> _Program:
    """The program of some files, with its calls at module level, or in a function that is named twice."""
    options: dict[str, Option] = {}
    for rows in files.values():
        of_libraries = (name for full in rows.names for name in table("parsers").get(full, ()))
        made = (Option(name, (name,), name.lstrip("-").replace("-", "_")) for name in of_libraries)
        options.update({option.dest: option for option in (*rows.options, *made)})
    calls = [call for rows in files.values() for call in rows.calls]
    around = {call.function for call in calls if call.function}
    used = {
        each for each in around if sum(named[each][name] for name in named[each].keys() & files.keys()) > 1
    }
    kept = (call for call in calls if not call.function or call.function in used)
    return _Program(every, files, options, tuple(kept))


def _way(program: _Program, mended: bool) -> StartWay:
    joins = [call for call in program.calls if call.name in table("joins")]
    own = ("torch.",) if not joins else ()  # torch's own start ranks where these join
    starts = [c for c in program.calls if c.name in table("starters") and not c.name.startswith(own)]
    loops = [c for c in program.calls if c.name in table("processes") and joins and c.loops]
    starter = min((*starts, *loops), key=program.calls.index, default=None)
    if starter is not None:
        return StartWay("program", tuple(_own_options(program, starter)))
    files = program.files.values()
    of_library = [word for rows in files for name in rows.names for word in table("libraries").get(name, ())]
    uses = any(listed("distributed_calls", call.name) for call in program.calls)
    imports = any(listed("distributed_libraries", name) for rows in files for name in rows.names)
    if not uses and not of_library and not imports:
        return StartWay("none" if any(rows.trains for rows in files) else "unseen")
    read = [name for name, variables in table("variables").items() if program.reads(variables)]
    options = [*of_library, *_rank_options(program, joins, mended)]
    return StartWay("launcher", tuple(options), read[0] if read and "torchrun" not in read else "")


# -- a program that starts its ranks ----------------------------------------


def _own_options(program: _Program, starter: KnownCall) -> Iterator[str]:
    options = program.options
    given = dict.fromkeys(name for name in starter.flags if name in options and options[name].flag)
    yield from (options[name].name for name in given)
    count = program.option_of(starter.values["count"])
    if count and count not in given:
        given[count] = None
        yield from (options[count].name, "%NPROC%")
    multiplied = {
        name: mark
        for name, mark in table("multiplied").items()
        if any(name in rows.multiplies for rows in program.files.values())
    }
    for name, mark in (table("own") | multiplied).items():
        own = options.get(name)
        if own is not None and name not in given and own.default != "env://":
            yield own.name
            if not own.flag:
                yield mark


# -- a program whose ranks a launcher starts ----------------------------------


def _rank_options(program: _Program, joins: Iterable[KnownCall], mended: bool) -> Iterator[str]:
    launcher, kind = program.options.get("launcher"), table("launcher")
    if launcher is not None and kind in launcher.choices and launcher.default != kind:
        yield from (launcher.name, kind)
    own = program.options.get("local_rank")
    if own is not None and not (mended and own.argparse and type(own.default) is int):
        if not program.reads(["LOCAL_RANK"]):
            yield from (own.name, table("local_rank"))
    if program.reads(["RANK"]):
        return
    given: set[str] = set()
    for call in joins:
        for keyword, mark in table("joined").items():
            dest = program.option_of(call.values[keyword])
            option = program.options.get(dest)
            if option is not None and dest not in given and option.default != "env://":
                given.add(dest)
                yield from (option.name, mark)
