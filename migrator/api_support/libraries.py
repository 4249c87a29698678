"""What the tables say of others than torch: functions of libraries, CUDA operators, options of programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, Optional, cast

from migrator.api_support import tables
from migrator.language import _
from migrator.light import NamedTuple

Limits = tuple[tuple[str, tables.Version], ...]  # such as (">=", (0, 4)), of a requirement


# -- functions that go to CUDA by themselves, or stay on the CPU where there is none: library_defaults.csv --


class LibraryDefault(NamedTuple):
    """One function or class in some versions of a library.

    ``argument`` decides, with its ``position`` where it has one, and is empty where nothing does: a value of
    ``harmless`` helps, ``missing`` there stands for none given; one of ``default`` is as good as none given.
    ``value`` is what to give, as source. ``unless`` is another argument, as it is written, with which nothing
    happens; one by its name alone chooses the device in another way. ``statement`` fixes the library when it
    stands after the import. ``outcome``: a CUDA device ``raises``, the ``cpu`` is taken where there is no
    CUDA, or the function is ``disabled`` then.
    """

    api: str
    argument: str
    position: Optional[int]
    library: str
    since: str
    until: str
    harmless: tuple[str, ...]
    default: tuple[str, ...]
    value: str
    outcome: Literal["raises", "cpu", "disabled"]
    unless: str
    statement: str
    advice: str

    @property
    def conditions(self) -> str:
        """The library's versions in which it is so, as a range; empty for all that are known."""
        ends = ((">=", self.since), ("<=", self.until))
        return ",".join(f"{sign}{version}" for sign, version in ends if version)

    @property
    def versions(self) -> str:
        """The same in words."""
        library = self.library.partition(" ")[0]
        after = _("from {library} {since} on", library=library, since=self.since) if self.since else ""
        value = "" if after else f"{library} "
        up_to = _("up to {value}{until}", value=value, until=self.until) if self.until else ""
        return " ".join(filter(None, (after, up_to)))


@cache
def defaults() -> Mapping[str, tuple[LibraryDefault, ...]]:
    """The functions by each of their names; a method's begins with a dot. Newer versions come first."""
    found: dict[str, tuple[LibraryDefault, ...]] = {}
    for row in tables.rows("library_defaults"):
        api, argument, position, names, library, since, until, harmless, *more = row
        same, value, outcome, unless, statement, advice, _source = more
        default = LibraryDefault(
            *(api, argument, int(position) if position else None, library, since, until),
            tuple(harmless.split()),
            tuple(same.split()),
            value,
            cast(Literal["raises", "cpu", "disabled"], outcome),
            *(unless, statement, _(advice)),
        )
        for name in names.split():
            others = found.get(name, ())
            found[name] = (default, *others) if not until else (*others, default)
    return found


@cache
def libraries() -> frozenset[str]:
    """The names under which these libraries are installed."""
    return frozenset(name for every in defaults().values() for each in every for name in each.library.split())


# -- CUDA operators that many projects define, and what stands for them on NPUs: operators.csv --------------

# A row by its columns, of which docs/api_db.md has the meaning.
KnownOperator = dict[str, str]
_COLUMNS = "operator functions modules packages bundled equivalents differs limits backward hardware source"
# Of these the extension's name, or its file's, says more than their own.
_OF_A_MODULE = r"(?:run_)?(?:forward|backward|fwd|bwd)(?:_\w+)?"


@cache
def _table() -> list[KnownOperator]:
    return [dict(zip(_COLUMNS.split(), row)) for row in tables.rows("operators")]


@cache
def known_operator(function: str, place: str) -> Optional[KnownOperator]:
    """What a function is that an extension binds for Python; ``place`` has the names of module and file."""
    by_module = next((each for each in _table() if re.search(each["modules"] or "(?!)", place.lower())), None)
    by_name = next((each for each in _table() if re.fullmatch(each["functions"], function)), None)
    return by_module if by_name is None or (by_module and re.fullmatch(_OF_A_MODULE, function)) else by_name


def equivalents_of(known: Optional[KnownOperator]) -> str:
    """What an operator is, and what stands for it on NPUs, in words; nothing for one that is not known."""
    if known is None:
        return ""
    words = {column: _(text) for column, text in known.items() if text}
    said = [_("Operator: {operator}. NPU equivalents: {equivalents}", **words)]
    said += [_("arguments: {differs}", **words)] if "differs" in words else []
    said += [_("limits: {limits}", **words)] if "limits" in words else []
    said += [_("without backward")] if known["backward"] == "no" else []
    return _("{said}.", said=_("; ").join(said))


@cache
def operators_of_libraries() -> dict[str, KnownOperator]:
    """The operators by the patterns of names that libraries have for them."""
    return {pattern: each for each in _table() for pattern in each["packages"].split()}


# -- what well-known programs take for devices, where their sources are not at hand: program_options.csv ----


class ProgramOption(NamedTuple):
    """An option of a program. ``values`` has for each value of CUDA what the program takes for NPUs.

    A value that is empty there is not supported on NPUs. A ``*`` at the end is a number, ``#`` are numbers
    with commas between them. ``needs_autoload``: the program does not import torch_npu, so these hold where
    torch does so by itself. ``advice`` is for values that cannot be replaced.
    """

    values: dict[str, str]
    needs_autoload: bool
    advice: str


@cache
def program_options() -> dict[tuple[str, str], ProgramOption]:
    """The options that are known, by the program, or the module that Python is given, and the name."""
    found: dict[tuple[str, str], ProgramOption] = {}
    for programs, options, values, autoload, advice, _source in tables.rows("program_options"):
        pairs = (value.partition("=") for value in values.split())
        option = ProgramOption({old: new for old, _, new in pairs}, autoload == "yes", _(advice))
        for program in programs.split(";"):
            found |= {(program, name): option for name in options.split()}
    return found


def programs() -> set[str]:
    """The first words of the programs' names."""
    return {
        word
        for program, _ in program_options()
        for word in program.replace("-", " ").replace(".", " ").split()[:1]
    }
