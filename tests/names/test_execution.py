"""Which places of a module are sure to run."""

from __future__ import annotations

import ast

import pytest

from migrator.names.conditions import is_conditional, surely_runs
from migrator.names.index import ModuleIndex

MAIN = "if __name__ == '__main__':\n    main()"


def place(text: str) -> tuple[ModuleIndex, ast.AST]:
    index = ModuleIndex(text.replace("HERE", "torch.gone()") + "\n", {"torch"})
    return index, next(node for node in index.refs if index.segment(node) == "torch.gone")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if x:\n    HERE", False),
        ("try:\n    HERE\nexcept AttributeError:\n    pass", False),
        ("try:\n    HERE\nfinally:\n    pass", True),
        ("with suppress(AttributeError):\n    HERE", False),
        ("def f():\n    HERE\nf()", True),
        ("def f():\n    HERE\ndef g():\n    f()\ng()", True),
        ("def f():\n    HERE\nif x:\n    f()", False),
        ("def f(n):\n    f(n - 1)\n    HERE", False),
        ("def main():\n    HERE\n" + MAIN, True),
        ("def main():\n    if x:\n        raise ValueError\n    HERE\n" + MAIN, True),
        ("def work(rank):\n    HERE\ndef main():\n    mp.spawn(work, nprocs=2)\n" + MAIN, True),
        ("class A:\n    def __init__(self):\n        HERE\na = A()", True),
        (
            "class A:\n    def __init__(self):\n        self.b()\n    def b(self):\n        HERE\na = A()",
            True,
        ),
        ("class A(nn.Module):\n    def forward(self, x):\n        HERE\na = A()", True),
    ],
)
def test_surely_runs(text: str, expected: bool) -> None:
    assert surely_runs(*place(text)) is expected


def test_a_condition_around_a_function_decides_too() -> None:
    assert is_conditional(*place("if x:\n    def f():\n        HERE"))
    assert not is_conditional(*place("def f():\n    HERE"))
