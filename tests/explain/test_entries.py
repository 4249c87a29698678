"""The table of errors: each entry has what a reader needs, and is found by its examples alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from migrator.data_folders import data_folder
from migrator.explain import table
from migrator.explain.logs import Log
from migrator.explain.scan import Scan
from migrator.explain.table import Entry, entries, known
from tests.timing import grows_evenly

LAYERS = (
    *("hccl", "runtime", "ge", "fe", "tbe", "driver", "torch_npu", "acl", "environment"),
    *("pytorch", "python", "launcher", "versions", "memory", "data"),
)
# One case checks the entries of one file, and names those that are wrong.
FILES = pytest.mark.parametrize(
    "file", sorted((data_folder("api_db") / "errors").glob("*.yaml")), ids=lambda file: file.stem
)


def found_in(text: str) -> set[str]:
    scan = Scan(known())
    scan.read(Log("a log", ""), enumerate(text.encode().split(b"\n"), 1))
    return {entry.code for record in scan.records for entry in record.found}


def entries_of(file: Path) -> list[Entry]:
    codes = {each["code"] for each in yaml.safe_load(file.read_bytes())}
    return [entry for entry in entries() if entry.code in codes]


def test_codes_are_unique() -> None:
    assert [code for code, count in Counter(entry.code for entry in entries()).items() if count > 1] == []


@FILES
def test_entries_have_what_a_reader_needs(file: Path) -> None:
    for entry in entries_of(file):
        code = entry.code
        assert re.fullmatch(r"[\w-]+", code), code
        assert entry.layer in LAYERS, code
        assert entry.sure in table.SURE, code
        assert entry.match, code
        assert entry.do, code
        assert entry.source, code
        assert all(re.match(r"https?://\S+$", source) for source in entry.source), code
        for text in (entry.cause, *entry.do):
            assert text == text.strip(), code
            assert text[0].isupper() or not text[0].isalpha(), f"{code}: a sentence has a capital: {text}"
            assert text[-1] in ".)", f"{code}: a sentence ends with a full stop: {text}"
        assert len(entry.name) <= 60, code


@FILES
def test_entries_are_found_by_their_examples_only(file: Path) -> None:
    for entry in entries_of(file):
        assert entry.examples, entry.code
        missed = [text for text in entry.examples if entry.code not in found_in(text)]
        caught = [text for text in entry.unlike if entry.code in found_in(text)]
        assert (missed, caught) == ([], []), entry.code


@FILES
def test_a_line_without_an_entrys_words_is_never_tried(file: Path) -> None:
    for entry in entries_of(file):
        loose = [regex for regex in entry.match if not table.words_needed(regex)]
        said = r"no word of these is whole: write \b where a word begins and ends, as in \bEI0006\b"
        assert not loose, f"{entry.code}: {said}: {loose}"


@FILES
def test_expressions_take_time_that_grows_with_the_line(file: Path) -> None:
    for entry in entries_of(file):
        for regex in map(re.compile, entry.match):
            for part in {*re.findall(r"\w{3,}", regex.pattern), entry.examples[0], " ", "a1 "}:
                even = grows_evenly(regex.search, lambda n, part=part: part * n, 6000 // len(part) + 4)
                assert even, (entry.code, regex.pattern, part)


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
