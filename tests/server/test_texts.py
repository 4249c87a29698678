"""Places and edits, against a plain model of the protocol."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from migrator.server.documents import UTF8, UTF16, UTF32, Text

_CODECS = {UTF8: ("utf-8", 1), UTF16: ("utf-16-le", 2), UTF32: ("utf-32-le", 4)}
_TEXTS = st.text(st.sampled_from("ab \r\n\f\x85\u2028é√😀"), max_size=30)


def plain_offset(text: str, place: types.Position, units: str) -> int:
    """The index of a place: cut the text into lines, and encode what stands before the place."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    codec, size = _CODECS[units]
    data = text[starts[place.line] :].encode(codec)[: place.character * size]
    return starts[place.line] + len(data.decode(codec))


def applied(text: str, edits: list[types.TextEdit], units: str) -> str:
    def key(edit: types.TextEdit) -> tuple[int, int]:
        return edit.range.start.line, edit.range.start.character

    for edit in sorted(edits, key=key, reverse=True):
        start = plain_offset(text, edit.range.start, units)
        end = plain_offset(text, edit.range.end, units)
        text = text[:start] + edit.new_text + text[end:]
    return text


@given(_TEXTS, st.integers(0, 30), st.sampled_from([UTF8, UTF16, UTF32]))
def test_places_are_found_again(text: str, offset: int, units: str) -> None:
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n":
        return  # no place lies inside of a line end
    item = Text(text, units)
    assert plain_offset(text, item.place(offset), units) == offset
    assert item.offset(item.place(offset)) == offset


@given(_TEXTS, _TEXTS, st.sampled_from([UTF8, UTF16, UTF32]))
def test_edits_make_the_new_text(old: str, new: str, units: str) -> None:
    item = Text(old, units)
    edits = item.edits_to(new)
    assert applied(old, edits, units) == new
    for edit in edits:
        for place in (edit.range.start, edit.range.end):
            offset = item.offset(place)
            assert old[offset - 1 : offset + 1] != "\r\n" or offset == 0


def test_only_what_changes_is_replaced() -> None:
    (edit,) = Text("import os\nx = torch.cuda\n").edits_to("import os\nx = torch.npu\n")
    assert edit == types.TextEdit(types.Range(types.Position(1, 10), types.Position(1, 14)), "npu")


@pytest.mark.parametrize("units", [UTF8, UTF16, UTF32])
@pytest.mark.parametrize("place", [types.Position(9, 0), types.Position(0, 99)])
def test_places_behind_the_end_are_the_end(place: types.Position, units: str) -> None:
    assert Text("é😀", units).offset(place) == 2


def test_changes() -> None:
    text = Text("a😀b\fc\nd")
    one = types.Range(types.Position(0, 3), types.Position(0, 4))
    assert text.changed(one, "X").text == "a😀X\fc\nd"
    assert text.changed(types.Range(types.Position(0, 6), types.Position(1, 1)), "").text == "a😀b\fc"
    assert text.changed(None, "new").text == "new"
    backwards = types.Range(types.Position(1, 0), types.Position(0, 0))
    assert text.changed(backwards, "+").text == "a😀b\fc\n+d"
