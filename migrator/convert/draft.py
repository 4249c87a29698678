"""What is to be changed and reported, collected while a plan is made, with texts of reports/distributed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from migrator.convert.program import Program
from migrator.convert.write import Changes, changed_arguments, write
from migrator.core.check import Converted
from migrator.data_folders import data_folder, reports_yaml
from migrator.findings.finding import Finding, Fix, Operation
from migrator.language import _
from migrator.matchers.context import instead_of
from migrator.names.tree import parse, walk

_CHANGED, _REPORTED = "NPU920", "NPU921"
Place = Literal["before", "after", "first", "last"]


def reported(key: str, **values: object) -> Finding:
    """What reports one of the texts, with values in it; its place is still to be given."""
    found = reports_yaml("distributed/texts.yaml")[key]
    message, advice = (_(found[part]).format_map(values) for part in ("message", "advice"))
    return Finding(_REPORTED, message, 1, 1, 1, 1, found.get("severity", "warning"), advice=advice)


@cache
def functions(file: str = "helpers.py") -> dict[str, str]:
    """The sources of a file's functions and classes by their names, in the order of the file.

    Those of ``ranks.py``, which the module for Horovod gets as well, come before what calls them.
    """
    source = (data_folder("reports") / "distributed" / file).read_text(encoding="utf-8")
    lines = source.splitlines()
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.update(functions("ranks.py") if node.name == "setup_distributed" else {})
            found[node.name] = "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
    return found


def sources(names: Iterable[str]) -> str:
    """The sources of some of the helpers, with those that they use."""
    every = functions()
    wanted = [name for name in names if name in every]
    for name in wanted:  # grows
        wanted += [word for word in names_in(every[name]) if word in every and word not in wanted]
    return "\n\n".join(text for name, text in every.items() if name in wanted)


def names_in(code: str) -> set[str]:
    """The bare names that stand in code. Raises what parsing does."""
    return {node.id for node in walk(parse(code)) if isinstance(node, ast.Name)}


class UncertainError(Exception):
    """Something without which a program cannot be converted was not found, or is not plain.

    ``node``: where, a module for a whole file; None: the program's first file.
    """

    def __init__(self, key: str, node: ast.AST | None = None, **values: object) -> None:
        self.finding = reported(key, **values)
        super().__init__(self.finding.message)
        self.node = node


@dataclass
class Draft:
    """The changes of each file, and the findings about them, by the files' names, with the rules' codes.

    ``used`` are the names in the new code of each file; ``set_up``: what the program does first, once the
    ranks have found each other.
    """

    program: Program
    changes: dict[str, Changes] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    set_up: list[str] = field(default_factory=list)

    def of(self, node: ast.AST) -> Changes:
        """The changes of a node's file, to add to."""
        return self.changes.setdefault(self.program.file(node).name, Changes())

    def use(self, node: ast.AST, code: str) -> None:
        """Import what new code in a node's file needs, and take over the helpers that it calls."""
        names = names_in(code)
        self.used.setdefault(self.program.file(node).name, set()).update(names)
        text = ast.unparse(parse(f"{code}\n{sources(names)}"))
        names = names_in(text)
        imports: dict[str, str] = reports_yaml("distributed/names.yaml")["imports"]
        needed = ((start, line) for start, line in imports.items() if start in text)
        self.of(node).imports += (line for start, line in needed if start.rstrip(".") in names)

    def replace(self, node: ast.AST, code: str, message: str = "") -> None:
        """Put code in the place of an expression, and say so where there is a message."""
        around = (up for _, up in self.program.above(node))
        up = next(up for up in around if isinstance(up, ast.JoinedStr) or not isinstance(up, ast.expr))
        if isinstance(up, ast.JoinedStr) and '"' in self.program.segment(up):
            code = code.replace('"', "'")  # before Python 3.12 the text's own quotes would end it
        self.of(node).edits.append(instead_of(self.program.file(node), node, code))
        self.use(node, code)
        if message:
            self.changed(node, message)

    def insert(self, place: Place, statement: ast.stmt, lines: Sequence[str], message: str = "") -> None:
        """Put lines around a statement, or into its body, and say so where there is a message."""
        getattr(self.of(statement), place).setdefault(statement, []).extend(lines)
        self.use(statement, "\n".join(lines))
        for line in lines if message else ():
            self.changed(statement, message, "INSERT", line)

    def remove(self, statement: ast.stmt, message: str = "") -> None:
        """Take a statement away, and say so where there is a message."""
        self.of(statement).removed.add(statement)
        if message:
            self.changed(statement, message, "DELETE")

    def indent(self, first: ast.stmt, last: ast.stmt, head: str, message: str) -> None:
        """Put statements into a block with this head."""
        self.of(first).around[first] = (last, head)
        self.use(first, f"{head}\n    pass")
        self.changed(first, message)

    def change_arguments(self, call: ast.Call, drop: Sequence[int], add: Sequence[str]) -> None:
        """Take the arguments at these places away from a call, and add others."""
        self.of(call).edits.extend(changed_arguments(self.program.file(call), call, drop, add))
        self.use(call, f"_({', '.join(add)})")

    def changed(self, node: ast.AST, message: str, operation: Operation = "MODIFY", new: str = "") -> None:
        """Say that a change is made at a node, or that ``new`` code is inserted there."""
        fix = Fix((), "unsafe", operation, made=True, after=new)
        self._add(node, Finding(_CHANGED, message, 1, 1, 1, 1, fix=fix))

    def report(self, key: str, node: ast.AST, **values: object) -> None:
        """Say what a person has to look at, with the lines to write."""
        self._add(node, reported(key, **values))

    def give_up(self, error: UncertainError) -> None:
        """Change nothing, and say why."""
        self.changes, self.findings = {}, {}
        self._add(error.node or self.program.entry.tree, error.finding._replace(severity="error"))

    def _add(self, node: ast.AST, finding: Finding) -> None:
        """Add a finding, at a node's place; a module has none."""
        file, line = self.program.file(node), getattr(node, "lineno", 0)
        if line:
            last = line if hasattr(node, "body") else getattr(node, "end_lineno", line)
            column = getattr(node, "col_offset", 0) + 1
            finding = finding._replace(line=line, column=column, end_line=last, span=file.span(node))
        self.findings.setdefault(file.name, []).append(finding)

    def converted(self) -> dict[str, Converted]:
        """The files that change or have findings, with their edits.

        Raises NotPlacedError or SyntaxError where a change has no place.
        """
        result = {}
        for name in sorted({*self.changes, *self.findings}):
            file, changes = self.program.files[name], self.changes.get(name)
            if changes:
                helpers = sources(self.used.get(name, ()))
                changes.header = "\n\n".join(filter(None, [helpers, changes.header]))
            edits = write(file, changes) if changes else ()
            result[name] = Converted(file.text, edits, tuple(self.findings.get(name, ())))
        return result
