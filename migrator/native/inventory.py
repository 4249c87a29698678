"""What a C++ or CUDA file takes from CUDA: the kernels that it starts, and the libraries that it uses."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from migrator.data_folders import reports_yaml
from migrator.native.model import Use

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
    begins = tuple(known.partition("::")[0] for known in _libraries())
    words = {token[0] for token in code}
    wanted = {w for w in words if w == "<<<" or w.startswith(begins) or "/" in w or "#" in w}  # 1 in 100
    wanted -= {"<<<"} if "__aicore__" in words else set()  # kernels in Ascend C are started as CUDA's are
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


@cache
def _libraries() -> dict[str, tuple[str, str]]:
    """The library and its route by the beginnings of words."""
    listed: list[dict[str, Any]] = reports_yaml("native/libraries.yaml")
    return {word: (item["library"], item["route"]) for item in listed for word in item["words"]}


@cache
def _library(word: str) -> tuple[str, str] | None:
    """The library of a word or of an included file, by the longest beginning that is known."""
    names = (word, word.rpartition("/")[2])
    begun = [(known, name) for known in _libraries() for name in names if name.startswith(known)]
    # Not with its letters alone: cube, cub.
    fitting = [known for known, name in begun if not name[len(known) : len(known) + 1].islower()]
    return _libraries()[max(fitting, key=len)] if fitting else None


# C++ and CUDA text as tokens: enough to see functions and what they mention, and no more. A regular
# expression of our own and not tree-sitter: its CUDA grammar is a compiled package of its own for each Python
# version, takes in no unexpanded macros (``AT_DISPATCH_…``, ``REGISTER_…``) around definitions without error
# nodes, and what is asked here needs no syntax tree.
# What there is most of comes first, blanks are taken as a run, repeated choices are avoided: twice as fast.
_TOKEN = re.compile(
    r"""
      (?P<word>[A-Za-z_]\w*(?![\w"]))        # R"…" and L"…" are no words
    | (?P<directive>^[ \t]*\#[^\n\\/]*(?:(?:\\.|/(?![/*])|/\*.*?\*/)[^\n\\/]*)*)
    | [ \t\r]*\n+|[ \t\r]+
    | //[^\n\\]*(?:\\.[^\n\\]*)*           # a comment; a backslash carries it on to the next line
    | /\*.*?(?:\*/|\Z)
    | (?P<sign><<<|>>>|::|->|==|!=|<=|>=|[{}()\[\];,<>&=~.:*])
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\s\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<string>(?:u8|[uUL])?"[^"\\\n]*(?:\\.[^"\\\n]*)*(?:"|$))
    | '(?:[^'\\\n]|\\.){1,8}'
    | (?P<macro>[A-Za-z_]\w*)               # a word right before a string
    | \d[\w.']*                            # a number: 1'000'000 holds no character literals
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_new = tuple.__new__


class Token(NamedTuple):
    """A word, a sign, a string (with its quotes) or a preprocessor directive, and where it begins."""

    text: str
    offset: int

    @property
    def is_word(self) -> bool:
        """Whether it is an identifier or a keyword."""
        return is_word(self.text)

    @property
    def literal(self) -> str | None:
        """What a string literal holds, as it is written; None for another token."""
        return self.text[1:-1] if self.text[0] == '"' else None


def is_word(text: str) -> bool:
    """Whether a token's text is an identifier or a keyword."""
    return text[0].isalpha() or text[0] == "_"


def tokens(text: str, start: int = 0) -> tuple[list[Token], list[int]]:
    """The tokens of a text, without comments, characters and numbers; offsets are counted from ``start``.

    With them, the places in the list at which directives stand.
    """
    found: list[Token] = []
    directives: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        token = match.group()
        if kind == "word" or kind == "sign":  # most are
            pass
        elif kind == "mark" or kind == "raw":
            token = f'"{token[token.index("(") + 1 : -2 - len(match.group("mark"))]}"'
        elif kind == "string":
            token = token[token.index('"') :]
        elif kind == "directive":
            directives.append(len(found))
        # A project has millions of them; calling Token itself takes twice as long.
        found.append(_new(Token, (token, start + match.start())))
    return found, directives


def line_starts(text: str) -> list[int]:
    """The offsets at which the lines of a text begin."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def launched(body: Sequence[Token], place: int) -> str:
    """The kernel's name before ``<<<``, with its template arguments left out."""
    depth = 0
    for token in reversed(body[max(0, place - 60) : place]):
        if token.text in (">", ">>>", ")"):
            depth += 3 if token.text == ">>>" else 1
        elif token.text in ("<", "("):
            depth -= 1
        elif depth <= 0 and token.is_word:
            return token.text
    return ""
