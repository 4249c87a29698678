"""The table of errors, ``api_db/errors/*.yaml``, and which of its entries a text may be about."""

from __future__ import annotations

import builtins
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple, Optional

from migrator.data_folders import data_folder
from migrator.language import _, also_read

SURE = ("certain", "likely", "possible")
_PARSER = "re._parser" if hasattr(re, "_parser") else "sre_parse"  # its name before Python 3.11
_MOST_WAYS = 64
_COMMON = frozenset("error failed failure message reason device python tensor warning rank".split())
_OPEN, _APART = "\0", " "  # what may be anything; what is no part of a word
# Letters as small ones, a blank for all that belongs to no word of ASCII.
_LETTERS = b"0123456789_abcdefghijklmnopqrstuvwxyz"
_AS_WORDS = bytes(byte if byte in _LETTERS else 32 for byte in bytes(range(256)).lower())


class Entry(NamedTuple):
    """An error by its ``code``: how it is recognised, its cause, what to do, where that is known from.

    ``match`` are regular expressions for one record of a log, a line or an exception; of exceptions only for
    those of ``kinds``. ``beside`` has to stand near. An error that ``follows`` is mostly the consequence of
    another one; of one that ``lacks`` neither the program nor the NPUs are the cause. A ``vague`` one says
    that something failed, and not what: in a log it explains nothing.
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
    beside: str = ""
    follows: bool = False
    lacks: bool = False
    vague: bool = False
    collect: Sequence[str] = ()
    unlike: Sequence[str] = ()

    def said(self) -> Entry:
        """The entry with what people read in the language of the run."""
        do, collect = [*map(_, self.do)], [*map(_, self.collect)]
        return self._replace(name=_(self.name), cause=_(self.cause), do=do, collect=collect)


class Sign(NamedTuple):
    """One regular expression by which an entry is recognised."""

    entry: Entry
    regex: re.Pattern[str]
    beside: Optional[re.Pattern[str]]


# The signs of all entries, each by a word that a text must hold, and with all that it must; in small letters.
Table = dict[bytes, list[tuple[frozenset[bytes], Sign]]]


def signs_in(table: Table, text: str, kinds: Iterable[str] = ()) -> Iterator[Sign]:
    """The signs in a record, each once; whether they stand beside what they ask for is not looked at.

    ``kinds`` are the names of an exception's type and of what it derives from, as far as known.
    """
    said, of = dict.fromkeys(words(text.encode("utf-8", "replace"))), frozenset(kinds)
    signs = {id(sign): sign for word in said for needed, sign in table.get(word, ()) if needed <= said.keys()}
    for sign in signs.values():
        wanted = sign.entry.kinds
        if (not wanted or not of.isdisjoint(wanted)) and sign.regex.search(text):
            yield sign


def entry_for(text: str, kinds: Iterable[str]) -> Optional[Entry]:
    """The entry that says most of an exception, ``Type: message``; None where the table knows none."""
    signs = signs_in(known(), text, kinds)
    found = [(sign.entry, bool(sign.beside)) for sign in signs if not sign.beside or sign.beside.search(text)]
    return min(found, key=weight)[0] if found else None


def weight(found: tuple[Entry, bool]) -> tuple[bool, bool, bool, int, bool, bool, bool]:
    """What makes of several entries for one failure the one that says most: the least, of equals the first.

    Each comes with whether what it asks for stands beside it. Numbers that functions return say less than
    the errors that are reported with them.
    """
    entry, beside = found
    of = entry.lacks, not entry.kinds, entry.code.isdigit() or entry.code.startswith("HCCL_E_")
    return entry.vague, entry.follows, not beside, SURE.index(entry.sure), *of


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
    """The signs of entries, by their words."""
    by_word: Table = {}
    for entry in some:
        beside = re.compile(entry.beside, re.ASCII) if entry.beside else None
        for text in entry.match:
            sign = Sign(entry, re.compile(text, re.ASCII), beside)
            for way in words_needed(text):
                by_word.setdefault(way[0], []).append((frozenset(way), sign))
    return by_word


@cache
def known() -> Table:
    """The signs of all entries of ours."""
    return table(entries())


def words_needed(regex: str) -> list[list[bytes]]:
    r"""The words that a text has which the expression matches: all of one list, the rarest of which is first.

    A word is whole only where what is beside it cannot belong to it: ``\bEI0006\b``. Nothing where a text may
    have none. They are in small letters.
    """
    ways = []
    for way in _ways(importlib.import_module(_PARSER).parse(regex, re.ASCII)):
        whole = re.findall(r"(?<![\w\0])\w+(?![\w\0])", f"{_OPEN}{way}{_OPEN}", re.ASCII)
        if not whole:
            return []
        ways.append([word.lower().encode() for word in sorted(whole, key=_rare, reverse=True)])
    return ways


def _rare(word: str) -> tuple[bool, bool, int]:
    """How rarely a word stands in a log: those with digits are mostly codes, and long ones are rare."""
    code = len(word) > 3 and any(sign.isdigit() for sign in word)
    return word.lower() not in _COMMON, code, len(word)


def _ways(parsed: Any) -> list[str]:
    """What an expression may stand for, each as its letters, with signs for what is open."""
    parts: list[list[str]] = []
    for operator, value in parsed:
        name = str(operator)
        if name == "LITERAL":
            ways = [chr(value) if ord(chr(value)) < 128 else _APART]
        elif (name == "AT" and str(value) != "AT_NON_BOUNDARY") or (name == "IN" and _is_apart(value)):
            ways = [_APART]
        elif name == "SUBPATTERN":
            ways = _ways(value[-1])
        elif name == "BRANCH":
            ways = [way for branch in value[1] for way in _ways(branch)]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0]:
            once = _ways(value[2])
            ways = once if value[1] == 1 or once == [_APART] else [f"{way}{_OPEN}" for way in once]
        elif name in ("ASSERT", "ASSERT_NOT"):
            continue
        else:
            ways = [_OPEN]
        parts.append(ways)
        if prod(map(len, parts)) > _MOST_WAYS:
            parts[-1] = [_OPEN]
    return ["".join(way) for way in product(*parts)]


def _is_apart(among: Any) -> bool:
    return all(
        (str(kind) == "LITERAL" and not re.match(r"\w", chr(value), re.ASCII))
        or (str(kind) == "CATEGORY" and str(value) in ("CATEGORY_SPACE", "CATEGORY_NOT_WORD"))
        for kind, value in among
    )
