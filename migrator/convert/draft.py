"""What is to be changed and said, collected while a plan is made."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.program import File
from migrator.convert.texts import Text, functions, text
from migrator.convert.write import Changes, changed_arguments, write
from migrator.core.check import Converted
from migrator.findings.finding import Finding, Fix, Operation
from migrator.matchers.context import instead_of

CHANGED = "NPU920"
REPORTED = "NPU921"
DIST = "import torch.distributed as dist"


class UncertainError(Exception):
    """Something without which a program cannot be converted was not found, or is not plain."""

    def __init__(self, key: str, file: File | None = None, node: Any = None, **values: object) -> None:
        self.text = text(key, **values)
        super().__init__(self.text.message)
        self.file = file
        self.node = node


@dataclass
class Draft:
    """The changes of each file, and the findings about them, by the files' names, with the rules' codes.

    ``set_up``: what the program does first, once the ranks have found each other.
    """

    changed_code: str = CHANGED
    reported_code: str = REPORTED
    changes: dict[str, Changes] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    set_up: list[str] = field(default_factory=list)

    def of(self, file: File) -> Changes:
        """The changes of a file, to add to."""
        return self.changes.setdefault(file.name, Changes())

    def replace(self, file: File, node: ast.AST, code: str, message: str = "") -> None:
        """Put code in the place of a node, and say so where there is a message."""
        self.of(file).edits.append(instead_of(file.index, node, code))
        if message:
            self.changed(file, node, message)

    def change_arguments(self, file: File, call: ast.Call, drop: Sequence[int], add: Sequence[str]) -> None:
        """Take the arguments at these places away from a call, and add others."""
        self.of(file).edits.extend(changed_arguments(file.index, call, drop, add))

    def call(self, file: File, helper: str, *imports: str) -> None:
        """Give a file one of the functions of ``helpers.py``, which new code calls, and what that imports."""
        self.of(file).helpers.setdefault(helper, functions("helpers.py")[helper])
        self.of(file).imports += imports

    def changed(
        self, file: File, node: ast.AST, message: str, operation: Operation = "MODIFY", new: str = ""
    ) -> None:
        """Say that a change is made at a node, or that ``new`` code is inserted there."""
        fix = Fix((), "unsafe", operation, made=True, after=new)
        found = _finding(self.changed_code, file, node, message)._replace(fix=fix)
        self.findings.setdefault(file.name, []).append(found)

    def report(self, key: str, file: File, node: ast.AST | None, **values: object) -> None:
        """Say what a person has to look at, with the lines to write."""
        self._say(file, node, text(key, **values))

    def refuse(self, file: File, error: UncertainError, before: str = "") -> None:
        """Say why nothing is converted."""
        message = before + error.text.message
        self._say(file, error.node, Text(message, error.text.advice, "error"))

    def _say(self, file: File, node: ast.AST | None, said: Text) -> None:
        found = _finding(self.reported_code, file, node, said.message)
        found = found._replace(advice=said.advice, severity=said.severity)
        self.findings.setdefault(file.name, []).append(found)


def converted(files: Mapping[str, File], draft: Draft) -> dict[str, Converted]:
    """What becomes of the files that change, or of which there is something to say.

    Raises NotPlacedError or SyntaxError where a change has no place.
    """
    result = {}
    for name in sorted({*draft.changes, *draft.findings}):
        changes, findings = draft.changes.get(name), draft.findings.get(name, ())
        edits = write(files[name].index, changes) if changes else ()
        result[name] = Converted(files[name].text, edits, tuple(findings))
    return result


def _finding(code: str, file: File, node: Any, message: str) -> Finding:
    if node is None:
        return Finding(code, message, 1, 1, 1, 1)
    last = node.end_lineno if not hasattr(node, "body") or isinstance(node.body, str) else node.lineno
    return Finding(code, message, node.lineno, node.col_offset + 1, last, 1, span=file.index.span(node))
