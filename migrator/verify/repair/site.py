"""The places in a program that a failure is about, what was seen there, and where these values came from."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from migrator.files.discover import discover
from migrator.files.errors import Unreadable
from migrator.files.source import Source, read
from migrator.findings.finding import Edit
from migrator.matchers.npu_import import import_at_top
from migrator.names.index import ModuleIndex
from migrator.names.made_from import parameter_of
from migrator.names.tree import Function, argument_of, called_name, hands_on, targets_of
from migrator.verify.diagnosis import Failure, Frame, Stack, is_own


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

    def added(self, node: ast.AST, text: str) -> Edit:
        """An edit that puts a text behind a node."""
        return Edit(self.end(node), self.end(node), text)

    def place(self, node: ast.expr | ast.stmt) -> str:
        """File, line and the line's text."""
        return f"{self.name}:{node.lineno}: {self.text.splitlines()[node.lineno - 1].strip()}"

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
        if any(alias.name == "torch" and not alias.asname for node in self.imports for alias in node.names):
            return []
        made = [import_at_top(self, f"import {name}") for name in ("torch", "torch_npu")]
        return [each[1] for each in made if each]


class Origin(NamedTuple):
    """An expression that a value came from, in its file."""

    code: Code
    node: ast.expr

    @property
    def line(self) -> str:
        """File, line and source, for a person."""
        return self.code.place(self.node)


@dataclass(frozen=True)
class Proposal:
    """Edits of one file. ``evidence``: what was seen there; ``origin``: the line that the value came from."""

    code: Code
    node: ast.expr | ast.stmt
    edits: Sequence[Edit]
    evidence: str
    origin: str = ""


@dataclass(frozen=True)
class Site:
    """One call of the program on the way to a failure; ``above``: those that led to it, innermost first."""

    seen: Seen
    code: Code
    frame: Frame
    statement: ast.stmt
    expression: ast.AST  # what failed; the statement where that is not known
    above: tuple[Frame, ...] = ()

    def values(self, *kinds: str) -> list[tuple[ast.expr, Mapping[str, Any]]]:
        """The expressions in what failed whose values are known (and of some kinds), the outermost first."""
        known = {value["expression"]: value for value in self.frame.values}
        found = []
        waiting: list[ast.AST] = [self.expression]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.expr):
                value = known.get(ast.unparse(node))
                if value is not None and (not kinds or value["kind"] in kinds):
                    found.append((node, value))
            if not (isinstance(node, ast.stmt) and node is not self.statement):
                waiting += ast.iter_child_nodes(node)
        return found

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls in what failed (of functions with some names), that which failed first."""
        calls = [node for node in ast.walk(self.expression) if isinstance(node, ast.Call)]
        return [call for call in calls if not names or called_name(call) in names]

    def proposal(
        self, node: ast.expr | ast.stmt, edits: Sequence[Edit], evidence: str, of: ast.expr | None = None
    ) -> Proposal:
        """A change of the file; with the line that the value ``of`` an expression came from."""
        return Proposal(self.code, node, edits, evidence, self.origin(of).line if of is not None else "")

    def origin(self, node: ast.expr) -> Origin:
        """Where the value of an expression was made, as far back as its way is clear."""
        way, above = [Origin(self.code, node)], self.above
        while True:
            here = way[-1]
            before = self.seen.assigned(here)
            parameter = parameter_of(here.code, here.node) if before is None else None
            if parameter is not None:
                caller = next(iter(self.seen.sites(above[::-1])), None)
                above = caller.above if caller else ()
                calls = caller.calls(parameter.function.name, "") or caller.calls() if caller else []
                if caller and calls:  # the argument that the caller in the stack gave
                    given = parameter.function.args
                    names = [one.arg for one in (*given.posonlyargs, *given.args)]
                    by_place = parameter.name in names and not hands_on(calls[0])
                    place = parameter.place - (names[:1] in (["self"], ["cls"]))
                    value = argument_of(calls[0], parameter.name, place if by_place else None)
                    before = Origin(caller.code, value) if value is not None else None
            if before is None or before in way:
                return here
            way.append(before)


class Seen:
    """What a run showed of a project: a failure, or where its processes waited. Files are read on demand."""

    def __init__(self, folder: Path, failure: Failure | None = None, stacks: Sequence[Stack] = ()) -> None:
        self.folder, self.failure, self.stacks = folder.resolve(), failure, stacks
        self._known: dict[Path, Code | None] = {}

    @property
    def waiting(self) -> list[tuple[str, Frame]]:
        """Who waits, or was waiting when its peer had gone, and where in the program."""
        for stacks in (self.stacks, [self.failure] if self.failure else []):
            found = [(each.who, own) for each in stacks if (own := each.own(self.folder)) is not None]
            if found:
                return found
        return []

    def code(self, file: str) -> Code | None:
        """A file by its path; None where it is not the project's, or cannot be parsed."""
        path = Path(file).resolve()
        if path not in self._known:
            self._known[path] = None
            with suppress(Unreadable, SyntaxError, ValueError, RecursionError):
                if is_own(str(path), self.folder):
                    name = path.relative_to(self.folder).as_posix()
                    self._known[path] = Code(name, path, read(path, path.name))
        return self._known[path]

    def every(self) -> Iterator[Code]:
        """All files that can be parsed."""
        python = (entry for entry in discover(self.folder) if entry.kind == "python")
        yield from filter(None, (self.code(str(entry.path)) for entry in python))

    def functions(self, *nodes: ast.AST) -> Iterator[tuple[Code, Function]]:
        """The functions of the project that have the name of one that is called in an expression."""
        names = {called_name(call) for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call)}
        for code in self.every():
            yield from ((code, each) for each in code.functions if each.name in names)

    def assigned(self, here: Origin) -> Origin | None:
        """The last assignment of a name before it is read, or the one of an attribute in the project."""
        node = here.node
        if isinstance(node, ast.Name):
            values = [each for each in here.code.assigned(node) if each.lineno <= node.lineno]
            return Origin(here.code, values[-1]) if values else None
        if not isinstance(node, ast.Attribute):
            return None
        found = [
            Origin(code, statement.value)
            for code in self.every()
            if node.attr in code.text
            for statement in code.statements
            if isinstance(statement, ast.Assign)
            for target in targets_of(statement)
            if isinstance(target, ast.Attribute) and target.attr == node.attr
        ]
        return found[0] if len(found) == 1 else None

    def sites(self, frames: Sequence[Frame] | None = None) -> list[Site]:
        """The program's own calls on the way to the failure, the innermost first."""
        frames = (self.failure.frames if self.failure else ()) if frames is None else frames
        found = []
        for place, frame in reversed(list(enumerate(frames))):
            code = self.code(frame.file)
            every = (node for node in code.statements if isinstance(node, ast.stmt)) if code else ()
            around = [node for node in every if node.lineno <= frame.line <= (node.end_lineno or node.lineno)]
            if code is None or not around:
                continue
            statement = max(around, key=lambda node: node.lineno)
            span = (frame.line, frame.column, frame.end_line, frame.end_column)
            inside = (node for node in ast.walk(statement) if isinstance(node, (ast.expr, ast.stmt)))
            expression = next((node for node in inside if _span(node) == span), statement)
            above = tuple(reversed(frames[:place]))
            found.append(Site(self, code, frame, statement, expression, above))
        return found


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int | None, int | None]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
