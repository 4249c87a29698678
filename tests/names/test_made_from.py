"""Where a value comes from, one step back after another."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.made_from import last_assigned, made_from
from migrator.names.what_is import UNKNOWN, what_is


def marked(text: str) -> tuple[ModuleIndex, ast.expr]:
    """A file, and what it gives ``mark`` last."""
    index = ModuleIndex(text, {"mark"})
    return index, [call for call in index.calls if ast.unparse(call.func) == "mark"][-1].args[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = f()\nmark(x)", "f()"),
        ("x = f() if a else g()\nmark(x)", "f() g()"),
        ("x = f() or g()\nmark(x)", "f() g()"),
        ("mark(x := f())", "f()"),
        ("t = {'a': f, 'b': g}\nmark(t[k])", "f g"),
        ("class A:\n    def a(self):\n        self.x = f()\n    def b(self):\n        mark(self.x)", "f()"),
        ("def a():\n    return f()\nmark(a())", "f()"),
        ("def go(x):\n    x = x or f()\n    mark(x)", "f() x x"),
        ("x = y\ny = x\nmark(x)", ""),
        ("mark(x)", "x"),
    ],
)
def test_what_a_value_may_be(text: str, found: str) -> None:
    assert " ".join(sorted(map(ast.unparse, made_from(*marked(text))))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = [f()]\nx.append(g())\nmark(x)", "f() g()"),
        ("for x in f():\n    mark(x)", "f()"),
        ("x = f()\nmark(x.view(2) + x)", "f()"),
        ("x = {}\nx['a'] = f()\nx['b'] = g()\nmark(x['a'])", "f()"),
    ],
)
def test_what_may_be_in_it(text: str, found: str) -> None:
    assert " ".join(sorted(map(ast.unparse, made_from(*marked(text), inside=True)))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = f()\nmark(x)", "f()"),
        ("x = f()\nx = g()\nmark(x)", "g()"),
        ("x = f()\nif a:\n    x = g()\nmark(x)", None),
        ("x = f()\nif a:\n    mark(x)\nx = g()", "f()"),
        ("x = f()\nfor i in a:\n    mark(x)\nx = g()", "f()"),
        ("x = f()\nfor i in a:\n    mark(x)\n    x = g()", None),
        ("x = f()\nx = g()\ndef go():\n    mark(x)", None),
    ],
)
def test_what_was_assigned_last(text: str, found: str | None) -> None:
    index, node = marked(text)
    assert isinstance(node, ast.Name)
    last = last_assigned(index, node)
    assert (ast.unparse(last.value) if last is not None and last.value is not None else None) == found


def test_questions_that_lead_back_to_themselves_end() -> None:
    index, node = marked("a = b.c()\nb = a.d()\nmark(a)")
    assert index.qualified_name(node) == ""
    assert what_is(index, node).kind == UNKNOWN


def test_what_was_answered_without_an_open_question_is_asked_again() -> None:
    """Who asks first decides nothing: of two that lead to each other both have the same answer then."""
    text = "import torch\nif c:\n    b = torch.zeros(1)\nelse:\n    b = a.d()\n"
    text += "if c:\n    a = b.c()\nelse:\n    a = b.e()\nmark({})"
    index, node = marked(text.format("a"))
    other_index, other = marked(text.format("b"))
    answers = what_is(index, node), what_is(index, read(index, "b"))
    assert answers[::-1] == (what_is(other_index, other), what_is(other_index, read(other_index, "a")))


def read(index: ModuleIndex, name: str) -> ast.Name:
    """Where a file reads a name."""
    read = (each for each in ast.walk(index.tree) if isinstance(each, ast.Name) and each.id == name)
    return next(each for each in read if isinstance(each.ctx, ast.Load))


def test_a_long_chain_of_choices_is_no_endless_question() -> None:
    steps = "\n".join(f"x{n} = x{n - 1}.f() if c else x{n - 2}.g()" for n in range(2, 400))
    index, node = marked(f"{steps}\nmark(x399)")
    assert what_is(index, node).kind == UNKNOWN
