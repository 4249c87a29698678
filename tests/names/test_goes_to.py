"""What takes a value, and where it ends."""

from __future__ import annotations

import ast

import pytest

from migrator.names.goes_to import goes_to, kept_as, taken_by
from migrator.names.index import ModuleIndex


def word(text: str) -> tuple[ModuleIndex, ast.expr]:
    """A file, and its string ``word``."""
    index = ModuleIndex(text, {"word"})
    return index, next(each for each in index.strings if getattr(each, "value", "") == "word")


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("f('word')", "argument", ""),
        ("f(a='word')", "argument", "a"),
        ("x = 'word'", "assigned", "x"),
        ("x['k'] = 'word'", "assigned", "k"),
        ("x[0] = 'word'", "assigned", ""),
        ("x: str = 'word'", "assigned", "x"),
        ("x: 'word' = 1", "annotation", "x"),
        ("x += 'word'", "added", "x"),
        ("x = {'k': 'word'}", "value", "k"),
        ("x = {'word': 1}", "key", ""),
        ("x['word']", "look-up", ""),
        ("'word'.lower()", "method", "lower"),
        ("x == 'word'", "compared", ""),
        ("x = 'word' if y else z", "choice", ""),
        ("x = y if 'word' else z", "test", "IfExp"),
        ("x = ['word']", "element", ""),
        ("x = f'{y}' + 'word'", "operand", "Add"),
        ("def f():\n    return 'word'", "returned", "f"),
        ("def f(a, *, b='word'): pass", "default", "b"),
        ("for x in 'word': pass", "iterated", "x"),
        ("'word'", "unused", ""),
    ],
)
def test_what_takes_a_value(text: str, kind: str, name: str) -> None:
    sink = taken_by(*word(text))
    assert (sink.kind, sink.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("x = 'word'\nf(x)\ng(a=x)", ["argument f", "argument g"]),
        ("x = ['word'] if c else y\nf(x)", ["argument f"]),
        ("x = 'word'\ny = x\nf(y)", ["argument f"]),
        ("x = 'word'\nx = x or 'other'\nf(x)", ["argument f"]),
        ("o.x = 'word'", ["assigned o.x = 'word'"]),
    ],
)
def test_where_a_value_ends(text: str, ends: list[str]) -> None:
    found = goes_to(*word(text))
    assert [f"{each.kind} {ast.unparse(getattr(each.holder, 'func', each.holder))}" for each in found] == ends


def test_the_name_of_a_value() -> None:
    assert kept_as(*word("f(device='word')")) == "device"
    assert kept_as(*word("def f(device='word'): pass")) == "device"
    assert kept_as(*word("def device():\n    return 'word'")) == ""
