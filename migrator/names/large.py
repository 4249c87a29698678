"""Large texts in pieces: Python's parser and compiler need several times the memory of what they make."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Callable, TypeVar

LARGE = 1_000_000  # characters; hardly any file that a person wrote
_PIECE = 100_000
# Where a statement of the module may begin: if none does, what is before it does not parse either. What goes
# on with the statement before it stays with that.
_BEGINNING = re.compile(r"(?<=[\n\r])(?:@|(?!(?:elif|else|except|finally)\b)[^\W\d])")

Made = TypeVar("Made")
_HOLDERS: dict[type, type] = {}


def in_pieces(text: str, make: Callable[[str], Made]) -> Iterator[tuple[int, Made]]:
    """What is made of a few statements of a module at a time, with the number of lines before them.

    Raises SyntaxError for a text that cannot be parsed: its place is that in the piece.
    """
    start = before = 0
    while start < len(text):
        size = _PIECE
        while True:
            beginning = _BEGINNING.search(text, start + size)
            end = beginning.start() if beginning else len(text)
            piece = text[start:end]
            try:
                made = make(piece)
            except SyntaxError:
                if beginning is None:
                    raise
                size = 2 * (end - start)  # the piece ended inside a statement
            else:
                break
        yield before, made
        before += piece.count("\n") + piece.count("\r") - piece.count("\r\n")
        start = end


def parse_large(text: str) -> ast.Module:
    """What ``ast.parse`` gives, and raises, in a third of its memory."""
    try:
        pieces = in_pieces(text, ast.parse)
        numbers: dict[int, int] = {}
        body = [each for before, tree in pieces for each in _moved(tree.body, before, numbers)]
    except SyntaxError:
        return ast.parse(text)  # the error's place is that in the text
    return ast.Module(body, [])


def _moved(statements: list[ast.stmt], lines: int, numbers: dict[int, int]) -> list[ast.stmt]:
    """The statements some lines further down, in little memory: line ``numbers`` are kept once.

    The parser gives each node a table of its own for its attributes, with room for more; the instances of a
    class share the names of theirs.
    """
    waiting: list[ast.AST] = [*statements]
    while waiting:
        node = waiting.pop()
        known = node.__dict__
        if not known:  # that of all operators of a kind
            continue
        if "lineno" in known:
            for name in ("lineno", "end_lineno"):
                number = known[name] + lines
                known[name] = numbers.setdefault(number, number)
        holder = _holder(node.__class__)
        for name, value in known.items():
            setattr(holder, name, value)
            if value.__class__ is list:
                waiting += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)
        node.__dict__ = holder.__dict__
    return statements


def _holder(kind: type) -> object:
    made = _HOLDERS.get(kind)
    if made is None:
        made = _HOLDERS[kind] = type(kind.__name__, (), {})
    return made()
