"""What a C++ or CUDA file takes from CUDA: the kernels that it starts, and the libraries that it uses."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from migrator.data_folders import reports_yaml

_FAR = 300  # characters before <<< in which a kernel's name and its template arguments stand
# Places in code only; what is blanked keeps its length, and so the lines.
_NO_CODE = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"")
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?P<word>[^>\"\n]{1,200})[>\"]", re.MULTILINE)


@dataclass(frozen=True)
class Use:
    """A kernel that is started, or a library: its first line, and how often it is used in the file.

    ``route`` is what stands for a library on NPUs; it is empty for a kernel.
    """

    name: str
    line: int
    count: int
    route: str = ""


def inventory(text: str) -> list[Use]:
    """The launches and the libraries of a file, each once, by their first lines."""
    code = _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    places: dict[tuple[str, str], list[int]] = {}
    for at, name in _launches(code):
        places.setdefault((name, ""), []).append(at)
    for pattern, where in ((_words(), code), (_INCLUDED, text)):
        for found in pattern.finditer(where):
            known = _library(found["word"])
            if known is not None:
                places.setdefault(known, []).append(found.start())
    uses = [
        Use(name, bisect_right(starts, min(every)), len(every), route)
        for (name, route), every in places.items()
    ]
    return sorted(uses, key=lambda use: (use.line, use.name))


def _launches(code: str) -> Iterator[tuple[int, str]]:
    """Where kernels are started, and their names."""
    at = code.find("<<<")
    while at >= 0:
        name = _name_at_end(code[max(at - _FAR, 0) : at])
        if name:
            yield at, name
        at = code.find("<<<", at + 3)


def _name_at_end(text: str) -> str:
    """The name that a text ends with, before its template arguments; empty where it ends with none."""
    text = text.rstrip()
    end, depth = len(text), 0
    while end and (depth or text[end - 1] == ">"):
        end -= 1
        depth += {">": 1, "<": -1}.get(text[end], 0)
    name = re.split(r"\W", text[:end].rstrip())[-1]
    return "" if name[:1].isdigit() else name


@cache
def _libraries() -> dict[str, tuple[str, str]]:
    """The library and its route by the beginnings of words."""
    listed: list[dict[str, Any]] = reports_yaml("native/libraries.yaml")
    return {word: (item["library"], item["route"]) for item in listed for word in item["words"]}


@cache
def _words() -> re.Pattern[str]:
    """Words that begin as one of a library, where they are called or name a space of names."""
    known: dict[str, list[str]] = {}  # by their beginnings: so few are tried at a word
    for word in sorted(_libraries(), key=len, reverse=True):
        if "/" not in word:
            known.setdefault(word[:3], []).append(re.escape(word[3:]))
    choice = "|".join(f"{re.escape(begins)}(?:{'|'.join(rest)})" for begins, rest in known.items())
    return re.compile(rf"\b(?P<word>(?:{choice})(?![a-z])\w*)(?=[ \t]*(?:\(|::))")


@cache
def _library(word: str) -> tuple[str, str] | None:
    """The library of a word or of an included file, by the longest beginning that is known."""
    base = word.rpartition("/")[2]
    fitting = [known for known in _libraries() if _begins(word, known) or _begins(base, known)]
    return _libraries()[max(fitting, key=len)] if fitting else None


def _begins(word: str, known: str) -> bool:
    """Whether a word begins with one of a library's, and not only with its letters (cube, cub)."""
    return word.startswith(known) and not word[len(known) : len(known) + 1].islower()
