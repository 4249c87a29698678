"""The table of errors: each entry has what a reader needs, and is found by its examples alone."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from migrator.explain import table
from migrator.explain.logs import Log
from migrator.explain.scan import Scan
from migrator.explain.table import Entry, entries, known
from tests.timing import grows_evenly

ENTRIES = [pytest.param(entry, id=entry.code) for entry in entries()]


def found_in(text: str) -> set[str]:
    scan = Scan(known())
    scan.read(Log("a log", ""), enumerate(text.encode().split(b"\n"), 1))
    return {entry.code for record in scan.records for entry, _beside in record.found}


def test_codes_are_unique() -> None:
    assert [code for code, count in Counter(entry.code for entry in entries()).items() if count > 1] == []


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_has_what_a_reader_needs(entry: Entry) -> None:
    assert re.fullmatch(r"[\w-]+", entry.code)
    assert entry.layer in table.LAYERS
    assert entry.sure in table.SURE
    assert entry.match
    assert entry.do
    assert entry.source
    assert all(re.match(r"https?://\S+$", source) for source in entry.source)
    for text in (entry.cause, *entry.do):
        assert text == text.strip()
        assert text[0].isupper() or not text[0].isalpha(), f"a sentence starts with a capital: {text}"
        assert text[-1] in ".)", f"a sentence ends with a full stop: {text}"
    assert len(entry.name) <= 60


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_is_found_by_its_examples_only(entry: Entry) -> None:
    assert entry.examples
    missed = [text for text in entry.examples if entry.code not in found_in(text)]
    caught = [text for text in entry.unlike if entry.code in found_in(text)]
    assert (missed, caught) == ([], [])


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_line_without_an_entrys_words_is_never_tried(entry: Entry) -> None:
    loose = [regex for regex in entry.match if not table.words_needed(regex)]
    said = r"no word of these is whole: write \b where a word begins and ends, as in \bEI0006\b"
    assert not loose, f"{said}: {loose}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_its_expressions_take_time_that_grows_with_the_line(entry: Entry) -> None:
    for regex in map(re.compile, (*entry.match, *filter(None, [entry.beside]))):
        for part in {*re.findall(r"\w{3,}", regex.pattern), entry.examples[0], " ", "a1 "}:
            assert grows_evenly(regex.search, lambda n, part=part: part * n, 6000 // len(part) + 4)


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        (r"\bEI0006\b", {"ei0006"}),
        (r"EI0006", set()),
        (r"call hccl api failed", {"hccl"}),
        (r"error code is 50\d{4}\b", {"code"}),
        (r"\blib(?:hccl|ge_runner)\.so: cannot", {"libhccl", "libge_runner"}),
        (r"(?i)\bno such\s+file", {"such"}),
        (r"\b(?:E[ZI]\d+|EE1001)\b", set()),
        (r"\bE\w+: device (?:lost)? now", {"device"}),
    ],
)
def test_words_that_a_text_must_have(regex: str, words: set[str]) -> None:
    assert {way[0] for way in table.words_needed(regex)} == {word.encode() for word in words}
