"""A file with all of its expressions, for what looks at more of a program than the words of rules."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrator.names.index import ModuleIndex
from migrator.names.outline import Outline
from migrator.names.tree import walk


class WholeFile(ModuleIndex):
    """The index of a whole file; ``name`` is its path in the project. Raises what parsing does.

    The fields of f-strings are part of the tree, at their places in the text.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text, (), Outline(text))
        self.name = name
        for statement in self.statements:
            self.expand(statement)
        for string in self.strings:
            if isinstance(string, ast.JoinedStr):
                self._put_fields(string)

    def every_node(self) -> Iterable[ast.AST]:
        """All nodes, in the order of the tree."""
        return self.once(("every node",), lambda: list(walk(self.tree)))

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines for itself, so that others can be put around it."""
        before, behind = self.lines.beside(self.span(statement))
        is_compound = isinstance(getattr(statement, "body", None), list)
        return not before.strip() and (is_compound or behind.strip()[:1] in (b"", b"#"))

    def _put_fields(self, string: ast.JoinedStr) -> None:
        """Put the fields of an f-string, with their places, where ``ast`` has its own."""
        values: list[ast.expr] = []
        for part in self.parts(string):
            if part.expression is None:
                value: ast.expr = ast.Constant(part.raw)
            else:
                value = ast.FormattedValue(part.expression, -1, None)
                self._parents[part.expression] = value
                for node in ast.walk(part.expression):
                    if isinstance(node, ast.expr):
                        start, end = self.span(node)
                        node.lineno, node.col_offset = self._place(start)
                        node.end_lineno, node.end_col_offset = self._place(end)
            values.append(ast.copy_location(value, string))
            self._parents[value] = string
        string.values = values

    def _place(self, offset: int) -> tuple[int, int]:
        line = self.line_of(offset)
        return line, offset - self.line_span(line, line)[0]
