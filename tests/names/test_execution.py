"""Which places of a module are sure to run."""

from __future__ import annotations

import pytest

from migrator.names.conditions import is_conditional, surely_runs
from migrator.names.index import ModuleIndex

MAIN = "if __name__ == '__main__':\n    main()"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HERE", True),
        ("if x:\n    HERE", False),
        ("if HERE:\n    pass", True),
        ("y = HERE if x else 1", False),
        ("y = x and HERE", False),
        ("y = HERE and x", True),
        ("try:\n    HERE\nexcept AttributeError:\n    pass", False),
        ("try:\n    HERE\nfinally:\n    pass", True),
        ("try:\n    pass\nexcept OSError:\n    HERE", False),
        ("with suppress(AttributeError):\n    HERE", False),
        ("for i in range(3):\n    HERE", True),
        ("f = lambda: HERE", False),
        ("def f():\n    HERE", False),
        ("def f():\n    HERE\nf()", True),
        ("def f():\n    HERE\ndef g():\n    f()\ng()", True),
        ("def f():\n    HERE\nif x:\n    f()", False),
        ("def f(n):\n    f(n - 1)\n    HERE", False),
        ("def f(y=HERE):\n    pass", True),
        ("def main():\n    HERE\n" + MAIN, True),
        ("def main():\n    if x:\n        return\n    HERE\n" + MAIN, False),
        ("def main():\n    if x:\n        raise ValueError\n    HERE\n" + MAIN, True),
        ("def work(rank):\n    HERE\ndef main():\n    mp.spawn(work, nprocs=2)\n" + MAIN, True),
        ("class A:\n    HERE", True),
        ("class A:\n    def __init__(self):\n        HERE", False),
        ("class A:\n    def __init__(self):\n        HERE\na = A()", True),
        (
            "class A:\n    def __init__(self):\n        self.b()\n    def b(self):\n        HERE\na = A()",
            True,
        ),
        ("class A:\n    def b(self):\n        HERE\na = A()", False),
        ("class A(nn.Module):\n    def forward(self, x):\n        HERE\na = A()", True),
    ],
)
def test_surely_runs(text: str, expected: bool) -> None:
    index = ModuleIndex(text.replace("HERE", "torch.gone()") + "\n", {"torch"})
    node = next(node for node in index.refs if index.segment(node) == "torch.gone")
    assert surely_runs(index, node) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    HERE", False),
        ("if x:\n    def f():\n        HERE", True),
        ("def f():\n    assert x\n    HERE", True),
        ("def f():\n    if not x:\n        raise ValueError\n    HERE", True),
        ("def f():\n    if not x:\n        y = 1\n    HERE", False),
    ],
)
def test_is_conditional(text: str, expected: bool) -> None:
    index = ModuleIndex(text.replace("HERE", "torch.gone()") + "\n", {"torch"})
    node = next(node for node in index.refs if index.segment(node) == "torch.gone")
    assert is_conditional(index, node) is expected
