"""Edits of a text, and where its places are afterwards."""

from __future__ import annotations

import pytest

from migrator.findings.edits import Occupied, OffsetMap, apply, extent, in_order, line_edits
from migrator.findings.finding import Edit

TEXT = b"0123456789"
# Replaces 2 and 3 by more, inserts before 6, removes 7, and replaces 9 by as much.
EDITS = [Edit(9, 10, "Z"), Edit(2, 4, "ABCD"), Edit(6, 6, "--"), Edit(7, 8, "")]
RESULT = b"01ABCD45--68Z"


def test_edits_are_made_in_the_order_of_the_text_and_each_once() -> None:
    assert apply(TEXT, EDITS) == RESULT
    assert apply(TEXT, [*EDITS, *EDITS]) == RESULT
    assert [edit.start for edit in in_order([*EDITS, *EDITS])] == [2, 6, 7, 9]
    assert apply(TEXT, []) == TEXT
    # What comes to one place stays in the order in which it is given.
    assert apply(TEXT, [Edit(3, 3, "b"), Edit(3, 3, "a")]) == b"012ba3456789"
    assert apply("ä|".encode(), [Edit(2, 3, "ö")]) == "äö".encode()


def test_extent() -> None:
    assert extent(EDITS) == (2, 10)
    assert extent([Edit(3, 9, ""), Edit(4, 5, "")]) == (3, 9)


@pytest.mark.parametrize(
    ("offset", "before", "behind"),
    [
        (0, 0, 0),
        (1, 1, 1),
        (2, 2, 2),  # where a replacement begins
        (3, 2, 6),  # in it
        (4, 6, 6),  # where it ends
        (5, 7, 7),
        (6, 8, 10),  # before and behind what is inserted
        (7, 11, 11),
        (8, 11, 11),
        (9, 12, 12),
        (10, 13, 13),
        (99, 102, 102),
    ],
)
def test_where_a_place_is_afterwards(offset: int, before: int, behind: int) -> None:
    way = OffsetMap().then(EDITS)
    assert (way.forward(offset), way.forward(offset, behind=True)) == (before, behind)


@pytest.mark.parametrize(
    ("offset", "was", "replaced"),
    [
        (1, 1, None),
        (2, 2, (2, 4)),
        (5, 2, (2, 4)),
        (6, 4, None),
        (7, 5, None),
        (8, 6, (6, 6)),
        (9, 6, (6, 6)),
        (10, 6, None),
        (11, 8, None),
        (12, 9, (9, 10)),
        (13, 10, None),
    ],
)
def test_where_a_place_was(offset: int, was: int, replaced: tuple[int, int] | None) -> None:
    way = OffsetMap().then(EDITS)
    assert (way.back(offset), way.replaced(offset)) == (was, replaced)


def test_a_place_over_some_rounds() -> None:
    second = [Edit(0, 0, "##"), Edit(2, 6, "X")]
    assert apply(RESULT, second) == b"##01X45--68Z"
    way = OffsetMap().then(EDITS).then(second)
    assert [way.forward(offset) for offset in (0, 2, 4, 9)] == [0, 4, 5, 11]
    assert way.forward(0, behind=True) == 2
    assert [way.back(offset) for offset in (0, 2, 4, 5, 11)] == [0, 0, 2, 4, 9]
    assert way.replaced(4) == (2, 6)  # of the round before
    assert way.replaced(11) is None
    assert (OffsetMap().forward(5), OffsetMap().back(5), OffsetMap().replaced(5)) == (5, 5, None)


@pytest.mark.parametrize(
    ("edit", "free"),
    [
        (Edit(0, 10, ""), True),
        (Edit(9, 11, ""), False),
        (Edit(19, 21, ""), False),
        (Edit(12, 13, ""), False),
        (Edit(5, 30, ""), False),
        (Edit(10, 20, ""), False),
        (Edit(10, 10, "x"), True),  # at its edge
        (Edit(20, 20, "x"), True),
        (Edit(15, 15, "x"), False),
        (Edit(25, 25, "x"), False),  # two insertions at one place
        (Edit(24, 26, ""), False),
        (Edit(25, 26, ""), True),
        (Edit(24, 25, ""), True),
        (Edit(30, 40, ""), True),
    ],
)
def test_what_is_occupied(edit: Edit, free: bool) -> None:
    occupied = Occupied()
    assert occupied.add([Edit(25, 25, "a"), Edit(10, 20, "b")])
    assert occupied.add([edit]) == free
    assert not occupied.add([edit])  # now it is


def test_all_edits_or_none() -> None:
    occupied = Occupied()
    assert occupied.add([Edit(10, 20, "")])
    assert not occupied.add([Edit(0, 5, ""), Edit(15, 16, "")])
    assert occupied.add([Edit(0, 5, "")])  # it was not taken with the other


def test_many_places_are_told_apart() -> None:
    occupied = Occupied()
    for start in range(0, 400, 20):
        assert occupied.add([Edit(start, start + 10, ""), Edit(start + 15, start + 15, "x")])
    for start in range(0, 400, 20):
        assert not occupied.add([Edit(start + 9, start + 11, "")])
        assert not occupied.add([Edit(start + 15, start + 15, "")])
        assert occupied.add([Edit(start + 10, start + 15, "")])


@pytest.mark.parametrize(
    ("old", "new", "edits"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", [Edit(2, 3, "B")]),
        ("a\nb\n", "a\nnew\nb\n", [Edit(1, 1, "\nnew")]),  # it belongs to the line before it
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", [Edit(1, 1, "\r\nnew")]),
        ("a\n", "new\na\n", [Edit(0, 0, "new\n")]),
        ("a\nb\nc\n", "a\nc\n", [Edit(2, 4, "")]),
        ("a\n", "a\n", []),
        ("a\n", "a\nb\nc\n", [Edit(1, 1, "\nb\nc")]),
        ("a\r\nb\n", "a\r\nb\nc\n", [Edit(4, 4, "\nc")]),  # the line before it has this end
        ("a\nlong\n", "a\nlong\nb\n", [Edit(6, 6, "\nb")]),
        ("x\n" * 300 + "a\n", "y\n" + "x\n" * 300 + "b\n", [Edit(0, 0, "y\n"), Edit(600, 601, "b")]),
    ],
)
def test_edits_by_lines(old: str, new: str, edits: list[Edit]) -> None:
    assert line_edits(old.encode(), new.encode()) == edits
    assert apply(old.encode(), edits) == new.encode()
