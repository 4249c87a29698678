"""What a C++ or CUDA file takes from CUDA: the kernels that it starts, and the libraries that it uses."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.native.model import Use
from migrator.native.tokens import Token, launched, line_starts, tokens

DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?")
_INCLUDED = re.compile(r"[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]{1,200})[>\"]")


def inventory(text: str) -> list[Use]:
    """The launches and the libraries of a file, each once, by their first lines."""
    code: list[Token] = []
    for token in tokens(text)[0]:
        code.append(token)
        if macro := DEFINE.match(token.text):
            code += tokens(token.text[macro.end() :], token.offset + macro.end())[0]
    return uses_in(code, line_starts(text))


def uses_in(code: Sequence[Token], starts: Sequence[int]) -> list[Use]:
    """What ``inventory`` gives, from the tokens, with those of macros, and where the lines begin."""
    places: dict[tuple[str, str], list[int]] = {}
    wanted = {*filter(_may_show, {token[0] for token in code})}  # one in a hundred
    for place in [place for place, token in enumerate(code) if token[0] in wanted]:
        word, at = code[place]
        known: tuple[str, str] | None = None
        if word == "<<<":
            known = (name, "") if (name := launched(code, place)) else None
        elif included := _INCLUDED.match(word):
            known = _library(included[1])
        elif place + 1 < len(code) and code[place + 1].text in ("(", "::"):
            longer = code[place + 1 : place + 4]  # at::cuda::
            ends = len(longer) == 3 and longer[2].text in ("(", "::")
            known = _library(word) or (_library(f"{word}::{longer[1].text}") if ends else None)
        if known is not None:
            places.setdefault(known, []).append(at)
    found = (Use(key[0], bisect_right(starts, at[0]), len(at), key[1]) for key, at in places.items())
    return sorted(found, key=lambda use: (use.line, use.name))


def _may_show(word: str) -> bool:
    """Whether a token may be a launch or show a library, by itself or with what follows."""
    return word == "<<<" or word.startswith(_beginnings()) or "/" in word or "#" in word


@cache
def _beginnings() -> tuple[str, ...]:
    return tuple(known.partition("::")[0] for known in _libraries())


@cache
def _libraries() -> dict[str, tuple[str, str]]:
    """The library and its route by the beginnings of words."""
    listed: list[dict[str, Any]] = reports_yaml("native/libraries.yaml")
    return {word: (item["library"], item["route"]) for item in listed for word in item["words"]}


@cache
def _library(word: str) -> tuple[str, str] | None:
    """The library of a word or of an included file, by the longest beginning that is known."""
    base = word.rpartition("/")[2]
    fitting = [known for known in _libraries() if _begins(word, known) or _begins(base, known)]
    return _libraries()[max(fitting, key=len)] if fitting else None


def _begins(word: str, known: str) -> bool:
    """Whether a word begins with one of a library's, and not only with its letters (cube, cub)."""
    return word.startswith(known) and not word[len(known) : len(known) + 1].islower()
