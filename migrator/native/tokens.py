"""C++ and CUDA text as tokens: the words, signs, strings and directives of a file, without its comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
