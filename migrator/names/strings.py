"""Edits inside string literals that leave quotes, prefixes and escapes alone."""

from __future__ import annotations

import ast
import re

from migrator.findings.finding import Edit
from migrator.names.fstrings import Part, place_fstring
from migrator.names.index import ModuleIndex
from migrator.names.tree import String, string_value

_PLAIN = re.compile(r"([bBuUrR]{0,2})('''|\"\"\"|'|\")(.*)\2\Z", re.S)


def _pieces(index: ModuleIndex, node: String) -> list[Part]:
    """The literal text of a string, part by part; without the fields of an f-string.

    Empty where the parts cannot be told apart.
    """
    if isinstance(node, ast.JoinedStr):
        return [part for part in index.parts(node) if part.expression is None]
    source = index.segment(node)
    plain = _PLAIN.match(source)
    if plain and plain.group(2) not in plain.group(3):
        skip = len(plain.group(1)) + len(plain.group(2))
        start = index.start(node) + skip
        return [Part(start, start + len(plain.group(3).encode("utf-8")), plain.group(3))]
    return place_fstring(source, index.start(node)) or []


def inside(index: ModuleIndex, node: ast.AST) -> tuple[int, int] | None:
    """The place of a literal's text, without quotes; None where it does not stand there as it is meant."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    pieces = _pieces(index, node)
    plain = len(pieces) == 1 and pieces[0].raw == node.value
    return (pieces[0].start, pieces[0].end) if plain else None


def replace_text(index: ModuleIndex, node: String, old: str, new: str, count: int = 0) -> list[Edit]:
    """Replace ``old`` in a literal's text, everywhere or ``count`` times.

    Where the text is split over concatenated parts, the whole literal is
    written anew. Empty where it is not there as written (escapes, for one).
    """
    edits: list[Edit] = []
    for piece in _pieces(index, node):
        position = piece.raw.find(old)
        while position >= 0 and (not count or len(edits) < count):
            start = piece.start + len(piece.raw[:position].encode("utf-8"))
            edits.append(Edit(start, start + len(old.encode("utf-8")), new))
            position = piece.raw.find(old, position + len(old))
    value = string_value(node)
    if edits or value is None or old not in value:
        return edits
    quote = '"' if '"' in index.segment(node)[:3] else "'"
    text = value.replace(old, new, count or -1).replace("\\", "\\\\").replace(quote, "\\" + quote)
    if not text.isprintable():
        return []
    return [Edit(index.start(node), index.end(node), f"{quote}{text}{quote}")]
