from __future__ import annotations

import pytest

pytest.importorskip("mcp")
from migrator.mcp.tools import _cut


def test_a_text_is_cut_between_lines() -> None:
    assert _cut("one\ntwo\n", 8) == ("one\ntwo\n", True)
    assert _cut("one\ntwo\n", 7) == ("one\n", False)
