"""What leaves a block."""

from __future__ import annotations

import ast

import pytest

from migrator.names.tree import ends_run, leaves, stops


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise E", (True, False, True)),
        ("return", (True, False, False)),
        ("sys.exit(1)", (True, True, True)),
        ("pytest.skip('no NPU')", (True, True, False)),
        ("self.skipTest('no NPU')", (True, True, False)),
        ("skip = exit", (False, False, False)),
        ("log('exit')", (False, False, False)),
    ],
)
def test_what_leaves(text: str, expected: tuple[bool, bool, bool]) -> None:
    (statement,) = ast.parse(text).body
    assert (leaves(statement), ends_run(statement), stops(statement)) == expected


def test_nothing_leaves_nothing() -> None:
    assert not leaves(None)
