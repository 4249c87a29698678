"""What the readers tell of a configuration is what Python's own readers of the formats make of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.other_files.index import read

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12)
KEYS = st.text("abcdefgh_ -é中", min_size=1, max_size=8)
VALUES = st.one_of(
    TEXTS, st.sampled_from(["cuda", "cuda:0", "nccl", "a: b", "# x", "'", '"', "a\\b", "x\ny"])
)
DATA = st.recursive(
    VALUES | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, DATA, min_size=1, max_size=5)


def texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from texts(entry, (*path, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from texts(entry, (*path, str(number)))
    elif isinstance(value, str):
        yield ".".join(path), value


def check(of_type: str, text: str, data: Any) -> None:
    index = read(f"a.{of_type}", of_type, text)
    found = [item for item in index.content.settings if item.kind == "key" and item.value is not None]
    known = [(item.name, item.value) for item in found]
    assert [pair for pair in texts(data) if pair not in known] == []
    for item in found:
        if item.value_span:
            assert index.text_of(item.value_span) == item.value


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.sampled_from([None, 2]), st.booleans())
def test_json(data: Any, indent: Any, escaped: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=escaped)
    check("json", text, data)


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.sampled_from([None, False, True]), st.booleans(), st.sampled_from([20, 200]))
def test_yaml(data: Any, flow: Any, plain: bool, width: int) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=plain, width=width)
    check("yaml", text, data)
