"""Source lines as HTML: colours by Pygments, and marks where two sides of a line differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from html import escape
from typing import Any, Optional

from pygments import lex
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String
from pygments.util import ClassNotFound

# The kinds of tokens that have a colour, the most special first; a class each in style.css.
_CLASSES = (
    (Comment, "c"),
    (String.Doc, "c"),
    (String, "s"),
    (Number, "n"),
    (Literal, "n"),
    (Operator.Word, "k"),
    (Keyword, "k"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Builtin, "b"),
)
_WORDS = re.compile(r"\w+|\s+|.", re.S)
Spans = list[tuple[int, int]]


@lru_cache(maxsize=64)
def _lexer(name: str) -> Any:
    name = name.rpartition("/")[2]
    if name.endswith(".ipynb"):
        name = "cell.py"
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)


def tokens_of(name: str, lines: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The parts of lines that follow one another, with the class of each, empty where it has none."""
    found: list[list[tuple[str, str]]] = [[]]
    for kind, text in lex("\n".join(lines), _lexer(name)):
        style = _class(kind)
        first, *others = text.split("\n")
        found[-1].append((style, first))
        found.extend([(style, each)] for each in others)
    lengths = [sum(len(text) for _, text in parts) for parts in found]
    return found if [len(line) for line in lines] == lengths else [[("", line)] for line in lines]


@cache
def _class(kind: Any) -> str:
    return next((name for each, name in _CLASSES if kind in each), "")


def marked(before: str, after: str) -> tuple[Spans, Spans]:
    """What of two lines is not in the other one: first and last character; nothing where little is common."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < 0.4:
        return [], []
    sides: tuple[Spans, Spans] = [], []
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag != "equal":
            for words, spans, begin, stop in ((old, sides[0], first, last), (new, sides[1], start, end)):
                if begin < stop:
                    offset = len("".join(words[:begin]))
                    spans.append((offset, offset + len("".join(words[begin:stop]))))
    return sides


def as_html(tokens: Iterable[tuple[str, str]], marks: Optional[Spans] = None) -> str:
    """A line as HTML; ``marks`` are what differs. Everything of the line is escaped."""
    parts = []
    offset = 0
    for style, text in tokens:
        inner = _with_marks(text, offset, marks or [])
        parts.append(f"<i class={style}>{inner}</i>" if style and not text.isspace() else inner)
        offset += len(text)
    return "".join(parts)


def _with_marks(text: str, offset: int, marks: Spans) -> str:
    html, at = "", 0
    for first, last in marks:
        start, end = max(first - offset, at), min(last - offset, len(text))
        if start < end:
            html += f"{escape(text[at:start])}<mark>{escape(text[start:end])}</mark>"
            at = end
    return html + escape(text[at:])
