"""Where the parts of f-strings are."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.strings import place_fstring


def parts(source: str) -> list[str] | None:
    """The texts at the places of an f-string's parts; those of expressions in brackets."""
    found = place_fstring(source, 0)
    if found is None:
        return None
    data = source.encode("utf-8")
    texts = [data[part.start : part.end].decode("utf-8") for part in found]
    assert all(part.raw in ("", text) for part, text in zip(found, texts))
    return [f"<{text}>" if part.expression is not None else text for part, text in zip(found, texts)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('f"cuda:{i}"', ["cuda:", "<i>"]),
        ("f'{device}:{ rank }'", ["<device>", ":", "<rank>"]),
        ('f"{{no}} {yes}"', ["{{no}} ", "<yes>"]),
        ('f"{x!r:>{width}}"', ["<x>", "<width>"]),
        ('f"{x = }"', ["<x>"]),
        ('f"{a == b}"', ["<a == b>"]),
        ("f\"{d['k']:0.2f} s\"", ["<d['k']>", " s"]),
        ('f"{f(x, {1: 2})}"', ["<f(x, {1: 2})>"]),
        ("f\"{'cuda'}:0\"", ["cuda", ":0"]),  # a text in a field reads as if it were written outside of it
        ('f"ü{x}ß"', ["ü", "<x>", "ß"]),
        ('f"""a\n{x}\n"""', ["a\n", "<x>", "\n"]),
        ('rf"\\d{n}"', ["\\d", "<n>"]),
        ('f"\\N{BULLET}{x}"', ["\\N{BULLET}", "<x>"]),
        ('"plain" f"{x}" \'more\'', ["plain", "<x>", "more"]),
        ('f"{unclosed"', None),
        ('f"{1 +}"', None),
    ],
)
def test_parts(source: str, expected: list[str] | None) -> None:
    assert parts(source) == expected


def test_nodes_inside_have_their_places_in_the_file() -> None:
    text = 'import torch\nname = f"ü {torch.cuda.current_device():d} {other}"\n'
    index = ModuleIndex(text, ["torch"])
    [string] = [node for node in index.strings if isinstance(node, ast.JoinedStr)]
    [call] = index.calls
    assert index.segment(string) == text[20:-1]
    assert index.segment(call) == "torch.cuda.current_device()"
    assert index.segment(call.func) == "torch.cuda.current_device"
    assert index.parent(call) is string
    assert index.qualified_name(call.func) == "torch.cuda.current_device"
