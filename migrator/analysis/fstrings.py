"""Where the parts of an f-string are.

Before Python 3.12 ``ast`` gives wrong places inside f-strings, so LibCST finds
the parts, and each replacement field is parsed again on its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """A piece of an f-string: literal text, or the expression of a field.

    ``start`` and ``end`` are byte offsets in the file. ``raw`` is the text as
    written, empty for an expression.
    """

    start: int
    end: int
    raw: str = ""
    expression: Any = None


def place_fstring(node: ast.JoinedStr, source: str, start: int) -> list[Part] | None:
    """The parts of an f-string (or of a concatenation with f-strings), in order.

    ``source`` is its text and ``start`` its byte offset in the file. The
    expressions are new ``ast`` nodes whose ``placed`` attribute is their span
    in the file. None where LibCST cannot read the text.
    """
    import libcst
    from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

    try:
        wrapper = MetadataWrapper(libcst.parse_module(f"({source})"), unsafe_skip_copy=True)
    except (libcst.ParserSyntaxError, RecursionError):
        return None
    spans = wrapper.resolve(ByteSpanPositionProvider)
    statement = wrapper.module.body[0]
    if not isinstance(statement, libcst.SimpleStatementLine):
        return None
    expression = statement.body[0]
    if not isinstance(expression, libcst.Expr):
        return None
    parts: list[Part] = []
    for piece in _pieces(expression.value):
        span = spans[piece]
        # The parenthesis that was put before the text shifts everything by one byte.
        begin = start + span.start - 1
        end = begin + span.length
        if isinstance(piece, libcst.FormattedStringText):
            parts.append(Part(begin, end, raw=piece.value))
        elif isinstance(piece, libcst.SimpleString):
            skip = len(piece.prefix) + len(piece.quote)
            parts.append(Part(begin + skip, end - len(piece.quote), raw=piece.raw_value))
        else:
            code = source.encode("utf-8")[span.start - 1 : span.start - 1 + span.length]
            tree = _parse_field(code.decode("utf-8"), begin)
            if tree is None:
                return None
            parts.append(Part(begin, end, expression=tree))
    return parts


def _pieces(node: Any) -> Iterator[Any]:
    import libcst

    if isinstance(node, libcst.ConcatenatedString):
        yield from _pieces(node.left)
        yield from _pieces(node.right)
    elif isinstance(node, libcst.SimpleString):
        yield node
    elif isinstance(node, libcst.FormattedString):
        for part in node.parts:
            if isinstance(part, libcst.FormattedStringText):
                yield part
            elif isinstance(part, libcst.FormattedStringExpression):
                yield part.expression
                for inner in part.format_spec or ():
                    if isinstance(inner, libcst.FormattedStringExpression):
                        yield inner.expression


def _parse_field(code: str, begin: int) -> ast.expr | None:
    """Parse a field's expression and place its nodes in the file."""
    try:
        tree = ast.parse(f"({code})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    starts = [0]
    data = f"({code})".encode()
    for position, byte in enumerate(data):
        if byte == 10:
            starts.append(position + 1)
    inside_fstring: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or id(node) in inside_fstring:
            inside_fstring.update(id(child) for child in ast.iter_child_nodes(node))
        if hasattr(node, "lineno") and id(node) not in inside_fstring:
            placed: Any = node
            first = begin - 1 + starts[placed.lineno - 1] + placed.col_offset
            last = begin - 1 + starts[placed.end_lineno - 1] + placed.end_col_offset
            placed.placed = (first, last)
    return tree
