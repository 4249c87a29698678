"""Large texts in pieces: Python's parser and compiler need several times the memory of what they make."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Callable, TypeVar

LARGE = 1_000_000  # characters; hardly any file that a person wrote
_PIECE = 100_000
# Where a statement of the module may begin: if none does, what is before it does not parse either. What goes
# on with the statement before it stays with that.
_BEGINNING = re.compile(r"(?<=[\n\r])(?:@|(?!(?:elif|else|except|finally)\b)[^\W\d])")

Made = TypeVar("Made")
_LINES = ("lineno", "end_lineno")
# What most nodes of a kind have in common, and their kind keeps for them all.
_COMMON = ("ctx", "kind", "type_comment")
_NOTHING: list[ast.AST] = []
_SMALL: dict[tuple[object, ...], type[ast.AST]] = {}


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
    """What ``ast.parse`` gives, and raises, in a fifth of its memory. Nobody may change it."""
    try:
        pieces = in_pieces(text, ast.parse)
        known: dict[object, object] = {}
        body = [each for before, tree in pieces for each in _moved(tree.body, before, known)]
    except SyntaxError:
        return ast.parse(text)  # the error's place is that in the text
    return ast.Module(body, [])


def _moved(statements: list[ast.stmt], lines: int, known: dict[object, object]) -> list[ast.stmt]:
    """The statements some lines further down, in little memory: equal numbers of lines are one object.

    So are equal strings, ``known`` from earlier statements, and all lists of nothing.
    """
    waiting: list[tuple[Any, Any]] = []

    def small(node: ast.AST) -> ast.AST:
        values = node.__dict__
        if not values:  # that of all operators of a kind
            return node
        common = tuple(map(values.get, _COMMON))
        kind = _small_kind(node.__class__, common, values.get("lineno") == values.get("end_lineno"))
        made = kind.__new__(kind)
        waiting.append((node, made))
        return made

    moved: Any = [small(statement) for statement in statements]
    while waiting:
        node, made = waiting.pop()
        values = node.__dict__
        for name in type(made).__slots__:
            value = values[name]
            if name in _LINES:
                value = known.setdefault(value + lines, value + lines)
            elif value.__class__ is str:
                value = known.setdefault(value, value)
            elif value.__class__ is list:
                for place, each in enumerate(value):  # the parser's own list has no room for more
                    if isinstance(each, ast.AST):
                        value[place] = small(each)
                value = value or _NOTHING
            elif isinstance(value, ast.AST):
                value = small(value)
            setattr(made, name, value)
    return moved  # type: ignore[no-any-return]


def _small_kind(kind: type[ast.AST], common: tuple[object, ...], in_one_line: bool) -> type[ast.AST]:
    """A kind of node without a table for each node's attributes, with room for more: it has a slot for each.

    What its nodes have in ``common`` is the kind's. To who asks, they are of the kind itself.
    """
    key = kind, common, in_one_line
    if key not in _SMALL:
        names = (*kind._fields, *kind._attributes)
        own: dict[str, Any] = {name: value for name, value in zip(_COMMON, common) if name in names}
        if in_one_line and "end_lineno" in names:
            own["end_lineno"] = property(attrgetter("lineno"))
        slots = tuple(name for name in names if name not in own)
        _SMALL[key] = type(kind.__name__, (kind,), {"__slots__": slots, "__class__": kind, **own})
    return _SMALL[key]
