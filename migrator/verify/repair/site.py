"""The place in a program that a failure is about: its statement, its expression, what was seen there."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.files.discover import discover
from migrator.files.errors import Unreadable
from migrator.files.source import Source, read
from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, Function
from migrator.verify.diagnosis import Frame
from migrator.verify.stacks import is_own


class Code(ModuleIndex):
    """A Python file of the project, with all of its expressions. Offsets are those of its UTF-8 text.

    ``name`` is its path below the project's folder. Raises as ``names.tree.parse`` does.
    """

    def __init__(self, name: str, path: Path, origin: Source) -> None:
        super().__init__(origin.text, ())
        self.name, self.path, self.origin = name, path, origin
        for statement in self.statements:
            self.expand(statement)

    def replaced(self, node: ast.AST, text: str) -> Edit:
        """An edit that puts a text in the place of a node."""
        return Edit(*self.span(node), text)

    def place(self, node: ast.expr | ast.stmt) -> str:
        """File, line and the line's text."""
        return f"{self.name}:{node.lineno}: {self.text.splitlines()[node.lineno - 1].strip()}"

    def owner_of(self, node: ast.AST) -> ast.AST:
        """The function that a node is in, or the module."""
        return self.function_of(node) or self.tree

    def indent(self, statement: ast.stmt) -> str:
        """What stands before a statement on its line."""
        line = self.text.splitlines()[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether a statement begins its line, and nothing follows on its last one."""
        before, behind = self.lines.beside(self.span(statement))
        return not before.strip() and behind.strip()[:1] in (b"", b"#")

    def import_of_torch(self) -> list[Edit]:
        """What a file that calls torch.npu has to import."""
        names = {
            alias.asname or alias.name
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        if "torch" in names:
            return []
        statements = [
            node
            for node in self.tree.body
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ]
        behind = [n for n in statements if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
        if behind:
            at, text = self.end(behind[-1]), "\nimport torch\nimport torch_npu"
        else:
            at, text = self.start(statements[0]), "import torch\nimport torch_npu\n"
        return [Edit(at, at, text)]


@dataclass(frozen=True)
class Site:
    """One call of the program on the way to a failure; ``above``: those that led to it, innermost first."""

    code: Code
    frame: Frame
    statement: ast.stmt
    expression: ast.AST  # what failed; the statement where that is not known
    above: tuple[Frame, ...] = ()

    def values(self) -> Iterator[tuple[ast.expr, Mapping[str, Any]]]:
        """The expressions in what failed of which the value is known, the outermost first."""
        known = {value["expression"]: value for value in self.frame.values}
        waiting: list[ast.AST] = [self.expression]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.expr):
                value = known.get(ast.unparse(node))
                if value is not None:
                    yield node, value
            if not (isinstance(node, ast.stmt) and node is not self.statement):
                waiting += ast.iter_child_nodes(node)

    def calls(self) -> list[ast.Call]:
        """The calls in what failed, that which failed first."""
        return [node for node in ast.walk(self.expression) if isinstance(node, ast.Call)]

    def of_kind(self, *kinds: str) -> list[tuple[ast.expr, Mapping[str, Any]]]:
        """The expressions whose values are of some kinds."""
        return [(node, value) for node, value in self.values() if value["kind"] in kinds]


class Sources:
    """The Python files of a project, each read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._known: dict[str, Code | None] = {}

    def code(self, file: str) -> Code | None:
        """A file by its path; None where it is not the project's, or cannot be parsed."""
        path = Path(file).resolve()
        if str(path) not in self._known:
            self._known[str(path)] = self._read(path)
        return self._known[str(path)]

    def _read(self, path: Path) -> Code | None:
        if not is_own(str(path), self.folder):
            return None
        try:
            return Code(path.relative_to(self.folder).as_posix(), path, read(path, path.name))
        except (Unreadable, SyntaxError, ValueError, RecursionError):
            return None

    def every(self) -> Iterator[Code]:
        """All that can be parsed."""
        for entry in discover(self.folder):
            code = self.code(str(entry.path)) if entry.kind == "python" else None
            if code is not None:
                yield code

    def functions(self, names: Container[str]) -> Iterator[tuple[Code, Function]]:
        """The functions of the project that have one of these names."""
        for code in self.every():
            for node in ast.walk(code.tree):
                if isinstance(node, FUNCTIONS) and node.name in names:
                    yield code, node

    def sites(self, frames: Sequence[Frame]) -> list[Site]:
        """The calls of the program's own, the innermost first."""
        found = []
        for place, frame in reversed(list(enumerate(frames))):
            code = self.code(frame.file)
            site = None if code is None else _site(code, frame, tuple(reversed(frames[:place])))
            if site is not None:
                found.append(site)
        return found


def _site(code: Code, frame: Frame, above: tuple[Frame, ...]) -> Site | None:
    statements = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.stmt) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return None
    statement = max(statements, key=lambda node: node.lineno)
    span = (frame.line, frame.column, frame.end_line, frame.end_column)
    inside = (node for node in ast.walk(statement) if isinstance(node, (ast.expr, ast.stmt)))
    expression = next((node for node in inside if _span(node) == span), statement)
    return Site(code, frame, statement, expression, above)


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int | None, int | None]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
