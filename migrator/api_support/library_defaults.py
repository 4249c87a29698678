"""Functions of libraries that go to CUDA by themselves, or stay on the CPU where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, Optional, cast

from migrator.api_support import tables
from migrator.language import _

Limits = tuple[tuple[str, tables.Version], ...]  # such as (">=", (0, 4)), of a requirement


class LibraryDefault(NamedTuple):
    """One function or class in some versions of a library.

    ``argument`` decides, with its ``position`` where it has one, and is empty where nothing does: a value of
    ``harmless`` helps, ``missing`` there stands for none given; one of ``default`` is as good as none given.
    ``value`` is what to give, as source. ``unless`` is another argument, as it is written, with which nothing
    happens; one by its name alone chooses the device in another way. ``statement`` mends the library when it
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

    def holds(self, limits: Optional[Limits]) -> Optional[bool]:
        """Whether it is so in the version that a project requires; None where that is not known."""
        if not self.since and not self.until:
            return True
        pin = next((number for sign, number in limits or () if sign in _PINS), None)
        if pin is not None:
            return tables.covers(self.since, self.until, pin)
        lowest = max((number for sign, number in limits or () if sign in (">=", ">")), default=())
        highest = min((number for sign, number in limits or () if sign in ("<=", "<")), default=None)
        behind = self.until and lowest > tables.as_tuple(self.until)
        before = self.since and highest is not None and highest <= tables.as_tuple(self.since)
        return False if behind or before else None

    @property
    def versions(self) -> str:
        """The library's versions in which it is so, in words; empty for all that are known."""
        library = self.library.partition(" ")[0]
        after = _("from {library} {since} on", library=library, since=self.since) if self.since else ""
        value = "" if after else f"{library} "
        up_to = _("up to {value}{until}", value=value, until=self.until) if self.until else ""
        return " ".join(filter(None, (after, up_to)))


_PINS = ("==", "===", "=", "~=", "^", "~", "")


@cache
def known() -> Mapping[str, tuple[LibraryDefault, ...]]:
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
    return frozenset(name for every in known().values() for each in every for name in each.library.split())
