"""Where the parts of a string literal are, and edits inside it that leave quotes, prefixes and escapes alone.

Before Python 3.12 ``ast`` gives wrong places inside f-strings, so they are found by
reading the text, and each replacement field is parsed again on its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Optional

from migrator.findings.finding import Edit
from migrator.light import NamedTuple
from migrator.names.tree import String, Text, string_value

if TYPE_CHECKING:
    from migrator.names.index import ModuleIndex

_GAP = re.compile(r"(?:\s|\\\r?\n|#[^\r\n]*)*")
_PLAIN = re.compile(r"([bBuUrR]{0,2})('''|\"\"\"|'|\")(.*)\2\Z", re.S)
_OPENING = re.compile(r"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
# What may end the expression of a field: a brace, a conversion, a format, or the ``=`` that shows it.
_END = re.compile(r"[}:]|!(?!=)|(?<![=<>!])=(?!=)")
# The expression of a field, or None for literal text; where it begins, and where it ends.
_Piece = tuple[Optional[ast.expr], int, int]


class Part(NamedTuple):
    """A piece of an f-string: literal text, or the expression of a field.

    ``start`` and ``end`` are byte offsets in the file. ``raw`` is the text as written, empty for an
    expression. ``spans`` says where the expression's nodes are: ``ast`` does not know.
    """

    start: int
    end: int
    raw: str = ""
    expression: ast.expr | None = None
    spans: Mapping[ast.AST, tuple[int, int]] = {}


def place_fstring(source: str, start: int) -> list[Part] | None:
    """The parts of an f-string (or of a concatenation with f-strings), in order.

    ``source`` is its text and ``start`` its byte offset in the file. The
    expressions are new ``ast`` nodes. None where the text cannot be read.
    """
    parts: list[Part] = []
    pieces: list[_Piece] = []
    try:
        position = _skip_gap(source, 0)
        while position < len(source):  # the texts in a row
            position = _skip_gap(source, _read_text(source, position, pieces))
        for tree, first, last in pieces:
            text = source[first:last]
            begin = start + len(source[:first].encode("utf-8"))
            end = begin + len(text.encode("utf-8"))
            opening = _OPENING.match(text)
            if tree is None:
                parts.append(Part(begin, end, raw=text))
            elif opening and isinstance(tree, ast.Constant) and text.endswith(opening.group(2)):
                # A text in a field reads as if it were written outside of it.
                raw = text[opening.end() : -len(opening.group(2))]
                parts.append(Part(begin + opening.end(), end - len(opening.group(2)), raw=raw))
            else:
                parts.append(Part(begin, end, expression=tree, spans=_spans(tree, text, begin)))
    except (ValueError, RecursionError):
        return None
    return parts


def _skip_gap(source: str, position: int) -> int:
    match = _GAP.match(source, position)
    return match.end() if match else position


def _read_text(source: str, position: int, found: list[_Piece]) -> int:
    """Read the literal that starts at ``position``, note its pieces, and give the place behind it."""
    opening = _OPENING.match(source, position)
    if opening is None:
        raise ValueError("no string that can be read")
    prefix, quote = opening.group(1).lower(), opening.group(2)
    formatted = "f" in prefix or "t" in prefix
    position = begin = opening.end()
    while True:
        if source.startswith(quote, position):
            if begin < position or not formatted:
                found.append((None, begin, position))
            return position + len(quote)
        char = source[position : position + 1]
        if not char or (char in "\r\n" and len(quote) == 1):
            raise ValueError("no string that can be read")
        if char == "\\":
            if formatted and "r" not in prefix and source.startswith("\\N{", position):
                position = source.index("}", position) + 1
            else:
                position += 1 if formatted and source[position + 1 : position + 2] in ("{", "}") else 2
        elif formatted and char == "{" and not source.startswith("{{", position):
            if begin < position:
                found.append((None, begin, position))
            position = begin = _read_field(source, position + 1, found, quote)
        else:
            position += 2 if formatted and source[position : position + 2] in ("{{", "}}") else 1


def _read_field(source: str, position: int, found: list[_Piece], quote: str) -> int:
    """Read the field whose brace is before ``position``, and give the place behind its other brace."""
    first = _skip_gap(source, position)
    tree, position = _expression(source, first)
    found.append((tree, first, first + len(source[first:position].rstrip())))
    if source.startswith("=", position):  # f"{x = }"
        position = _skip_gap(source, position + 1)
    if source.startswith("!", position):
        while source[position : position + 1] not in ("}", ":", ""):
            position += 1
    if source.startswith(":", position):
        position += 1
        while source[position : position + 1] != "}":
            if position >= len(source) or source.startswith(quote, position):
                raise ValueError("no string that can be read")
            if source[position] == "{":
                position = _read_field(source, position + 1, found, quote)
            else:
                position += 1
    if source[position : position + 1] != "}":
        raise ValueError("no string that can be read")
    return position + 1


def _expression(source: str, first: int) -> tuple[ast.expr, int]:
    """The expression that begins at ``first``, and the place behind it: no shorter text can be parsed."""
    for end in _END.finditer(source, first):
        try:
            return ast.parse(f"({source[first : end.start()]})", mode="eval").body, end.start()
        except SyntaxError:  # it stands in a string or in brackets
            continue
    raise ValueError("no expression that can be read")


def _spans(tree: ast.expr, code: str, begin: int) -> dict[ast.AST, tuple[int, int]]:
    """Where the nodes of a field's expression are in the file."""
    starts = [0, *(line.end() for line in re.finditer(b"\n", f"({code})".encode()))]
    spans: dict[ast.AST, tuple[int, int]] = {}
    inside_fstring: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or node in inside_fstring:
            inside_fstring.update(ast.iter_child_nodes(node))
        if isinstance(node, (ast.expr, ast.keyword, ast.arg)) and node not in inside_fstring:
            first = begin - 1 + starts[node.lineno - 1] + node.col_offset
            last = begin - 1 + starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
            spans[node] = (first, last)
    return spans


def _literal_pieces(index: ModuleIndex, node: String) -> list[Part]:
    """The literal text of a string, part by part; without the fields of an f-string.

    Empty where the parts cannot be separated.
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
    pieces = _literal_pieces(index, node)
    plain = len(pieces) == 1 and pieces[0].raw == node.value
    return (pieces[0].start, pieces[0].end) if plain else None


def replace_text(index: ModuleIndex, node: Text, old: str, new: str, count: int = 0) -> list[Edit]:
    """Replace ``old`` in a literal's text, everywhere or ``count`` times.

    Where the text is split over concatenated parts, the whole literal is
    written anew. Empty where it is not there as written (escapes, for one).
    """
    edits: list[Edit] = []
    if isinstance(node, ast.keyword):
        start = index.start(node)
        return [Edit(start, start + len(old.encode("utf-8")), new)] if node.arg == old else []
    for piece in _literal_pieces(index, node):
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
