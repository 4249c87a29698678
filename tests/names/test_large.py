"""Large files are parsed and compiled in pieces, with the same tree and the same errors."""

from __future__ import annotations

import ast
import tracemalloc
from pathlib import Path

import pytest

from migrator.core import readable
from migrator.names import large, tree

PARTS = '''
"""A text
else: not of the code
"""
import os; import sys  # é
@property
def f(a, b=[x for x in y if x]):
    """Of a
function"""
    return f"{a!r:>{b}}"
if os:
    pass
else:
    pass
try:
    pass
except* OSError:
    pass
values = [
1,
two,
]
total = 1 + \\
three
class C: pass
@wraps(
f)
async def g(): await h
match values:
    case [1, *_]: pass
last = lambda: -1
'''
if __import__("sys").version_info < (3, 11):
    PARTS = (
        PARTS.replace("except*", "except")
        .replace("match values", "if values")
        .replace("case [1, *_]", "if _")
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_PIECE", 10)
    for module in (tree, readable):
        monkeypatch.setattr(module, "LARGE", 100)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_same_tree(small: None, newline: str) -> None:
    text = (PARTS + Path(large.__file__).read_text() + PARTS).replace("\n", newline)
    pieces = list(large.in_pieces(text, ast.parse))
    assert len(pieces) > 20
    assert _shown(tree.parse(text)) == _shown(ast.parse(text))


def _shown(node: object) -> object:
    if isinstance(node, list):
        return [_shown(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    names = (*node._fields, *node._attributes)
    return node.__class__, {name: _shown(getattr(node, name)) for name in names}


def test_nodes_are_of_the_usual_kinds(small: None) -> None:
    made, usual = tree.parse(PARTS * 4), ast.parse(PARTS * 4)
    for node, expected in zip(ast.walk(made), ast.walk(usual)):
        assert node.__class__ is expected.__class__
        assert isinstance(node, type(expected))
    assert ast.unparse(made) == ast.unparse(usual)
    compile(made, "made.py", "exec")


@pytest.mark.parametrize(
    ("wrong", "line"),
    [("else: pass\n", 2), ("x = (\n", 2), ("'''\n", 2), ("def f(:\n    pass\n", 2), ("  x\n", 2)],
)
def test_the_same_error(small: None, wrong: str, line: int) -> None:
    text = "x = 1\n" + wrong + "y = 2\n" * 50
    with pytest.raises(SyntaxError) as expected:
        ast.parse(text)
    with pytest.raises(SyntaxError) as error:
        tree.parse(text)
    assert (str(error.value), error.value.lineno) == (str(expected.value), expected.value.lineno)


@pytest.mark.parametrize(
    "wrong", ["return\n", "from __future__ import division\n", "global y\n", "def f():\n    break\n"]
)
def test_what_python_does_not_compile(small: None, wrong: str) -> None:
    lines = "y = 2\n" * 50
    with pytest.raises(SyntaxError) as error:
        readable.check_compiles(lines + wrong + lines)
    assert error.value.lineno in (51, 52)
    readable.check_compiles(lines + "def f():\n    return y\n" + lines)


def test_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_PIECE", 1000)
    monkeypatch.setattr(tree, "LARGE", 1000)
    text = "import torch\n" + "x = torch.ones(3).cuda()\n" * 1000
    peaks = []
    for parse in (ast.parse, tree.parse):
        tracemalloc.start(1)
        made = parse(text)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(made.body) == 1001
    assert peaks[1] < peaks[0] / 4
