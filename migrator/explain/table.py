"""The table of errors, ``api_db/errors/*.yaml``, and which of its entries a text may be about."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, Optional

from migrator.data_folders import data_folder
from migrator.language import _, also_read

SURE = ("certain", "likely", "possible")
_MOST_WAYS = 64
# Of regular expressions: what says what is beside, groups, and one sign with how often it stands.
_BESIDE = re.compile(r"\(\?(?:i|<?[=!](?:\\.|[^()\\])*)\)")
_GROUP = re.compile(r"(?<!\\)\((?:\?:|\?P<\w+>)?((?:\\.|[^()\\])*)\)([?*+]?)")
_ONE = re.compile(r"(\[\^?(?:\\.|[^\]\[\\])+\]|\\?.)([*+?]|\{\d*,?\d*\})?\??")
_NO_LETTER = re.compile(r"\\[bsW]|\\?[^\w\\.\[\0]|\\[.\\\[]|\[(?:\\s|\\?[^\w\\^])+\]", re.ASCII)
_COMMON = frozenset("error failed failure message reason device python tensor warning rank".split())
_OPEN, _APART = "\0", " "  # what may be anything; what is no part of a word
# Letters as small ones, a blank for all that belongs to no word of ASCII.
_LETTERS = b"0123456789_abcdefghijklmnopqrstuvwxyz"
_AS_WORDS = bytes(byte if byte in _LETTERS else 32 for byte in bytes(range(256)).lower())


class Entry(NamedTuple):
    """An error by its ``code``: how it is recognised, its cause, what to do, where that is known from.

    ``match`` are regular expressions for one record of a log, a line or an exception; of exceptions only for
    those of ``kinds``. An error that ``follows`` is mostly the consequence of another one; of one that
    ``lacks`` neither the program nor the NPUs are the cause. A ``vague`` one says that something failed, and
    not what: in a log it explains nothing.
    """

    code: str
    name: str
    layer: str
    match: Sequence[str]
    cause: str
    do: Sequence[str]
    sure: str
    source: Sequence[str]
    examples: Sequence[str]
    kinds: Sequence[str] = ()
    follows: bool = False
    lacks: bool = False
    vague: bool = False
    collect: Sequence[str] = ()
    unlike: Sequence[str] = ()

    def said(self) -> Entry:
        """The entry with what people read in the language of the run."""
        do, collect = [*map(_, self.do)], [*map(_, self.collect)]
        return self._replace(name=_(self.name), cause=_(self.cause), do=do, collect=collect)


# The regular expressions of all entries, by a word that a text must hold, and with all that it must; in small
# letters.
Table = dict[bytes, list[tuple[frozenset[bytes], re.Pattern[str], Entry]]]


def entries_in(table: Table, text: str, kinds: Iterable[str] = ()) -> list[Entry]:
    """The entries that a record may be about, each once.

    ``kinds`` are the names of an exception's type and of what it derives from, as far as known.
    """
    said, of = dict.fromkeys(words(text.encode("utf-8", "replace"))), frozenset(kinds)
    found: dict[str, Entry] = {}
    for needed, regex, entry in (sign for word in said for sign in table.get(word, ())):
        if entry.code not in found and needed <= said.keys():
            if (not entry.kinds or not of.isdisjoint(entry.kinds)) and regex.search(text):
                found[entry.code] = entry
    return [*found.values()]


def entry_for(text: str, kinds: Iterable[str]) -> Optional[Entry]:
    """The entry that says most of an exception, ``Type: message``; None where the table knows none."""
    return min(entries_in(known(), text, kinds), key=weight, default=None)


def weight(entry: Entry, text: str = "") -> tuple[int, ...]:
    """What makes of several entries for one failure the one that says most: the least, of equals the first.

    One for a message of its own says more than a code, and that more than a number, best one in ``text``.
    """
    number = entry.code.isdigit() or entry.code.startswith("HCCL_E_")
    general = number + (not entry.code.islower()), number and entry.code not in text
    return entry.vague, entry.follows, SURE.index(entry.sure), entry.lacks, not entry.kinds, *general


def kinds_of(name: str) -> list[str]:
    """The names of an exception's type and, where it is Python's, of what it derives from."""
    return [each.__name__ for each in getattr(getattr(builtins, name, None), "__mro__", ())] or [name]


def words(text: bytes) -> list[bytes]:
    """The words of a text, in small letters; NULs are nothing."""
    return text.translate(_AS_WORDS, b"\0").split()


@cache
def entries() -> list[Entry]:
    """All entries, by files and in their order."""
    import yaml

    also_read("api_db", "errors/zh.po")

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = []
    for file in sorted((data_folder("api_db") / "errors").glob("*.yaml")):
        for each in yaml.load(file.read_bytes(), Loader=loader) or ():  # nosec B506
            sources = each["source"]
            found.append(Entry(**{**each, "source": [sources] if isinstance(sources, str) else sources}))
    return found


def table(some: Iterable[Entry]) -> Table:
    """The regular expressions of entries, by their words."""
    by_word: Table = {}
    for entry in some:
        for text in entry.match:
            regex = re.compile(text, re.ASCII)
            for way in dict.fromkeys(map(tuple, words_needed(text))):
                by_word.setdefault(way[0], []).append((frozenset(way), regex, entry))
    return by_word


@cache
def known() -> Table:
    """The regular expressions of all entries."""
    return table(entries())


def words_needed(regex: str) -> list[list[bytes]]:
    r"""The words that a text has which the expression matches: all of one list, the rarest of which is first.

    A word is whole only where what is beside it cannot belong to it: ``\bEI0006\b``. Nothing where a text may
    have none. They are in small letters.
    """
    ways = []
    for way in _ways(f"({regex})"):
        whole = re.findall(r"(?<![\w\0])\w+(?![\w\0])", f"{_OPEN}{way}{_OPEN}", re.ASCII)
        if not whole:
            return []
        ways.append([word.lower().encode() for word in sorted(whole, key=_rare, reverse=True)])
    return ways


def _rare(word: str) -> tuple[bool, bool, int]:
    """How rarely a word stands in a log: those with digits are mostly codes, and long ones are rare."""
    code = len(word) > 3 and any(sign.isdigit() for sign in word)
    return word.lower() not in _COMMON, code, len(word)


def _ways(regex: str) -> list[str]:
    """What an expression may stand for, each as its letters, with signs for what is open."""
    regex = _BESIDE.sub("", regex)
    group = _GROUP.search(regex)  # an innermost one
    if not group:
        return [_ONE.sub(_letter, regex)]
    branches = re.split(r"(?<!\\)\|", group[1])
    if group[2] in ("?", "*") or len(branches) > _MOST_WAYS:
        branches = [_OPEN]
    before, after = regex[: group.start()], (_OPEN if group[2] else "") + regex[group.end() :]
    return [way for branch in branches for way in _ways(before + branch + after)]


def _letter(one: re.Match[str]) -> str:
    often = one[2] or ""
    if often[:1] in ("*", "?") or often[:2] in ("{0", "{,"):
        return _OPEN
    if _NO_LETTER.fullmatch(one[1]) or not one[1].isascii():
        return _APART
    return (one[1] if one[1].isalnum() or one[1] == "_" else _OPEN) + (_OPEN if often else "")
