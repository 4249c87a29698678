"""What is to be changed and said, collected while a plan is made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from migrator.convert.distributed.syntax import File
from migrator.convert.distributed.write import Changes
from migrator.findings.finding import Finding

CHANGED = "NPU920"
REPORTED = "NPU921"
DIST = "import torch.distributed as dist"


@dataclass
class Draft:
    """The changes of each file, and the findings about them, by the files' names, with the rules' codes."""

    changed_code: str = CHANGED
    reported_code: str = REPORTED
    changes: dict[str, Changes] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)

    def of(self, file: File) -> Changes:
        """The changes of a file, to add to."""
        return self.changes.setdefault(file.name, Changes())

    def changed(self, file: File, node: Any, message: str, after: str, operation: str = "MODIFY") -> None:
        """Say that a change is made at a node."""
        before = "" if operation == "INSERT" else file.index.segment(node)
        found = _finding(self.changed_code, file, node, message)
        found = replace(found, safety="unsafe", operation=operation, before=before, after=after)
        self.findings.setdefault(file.name, []).append(found)

    def report(self, file: File, node: Any, message: str, advice: str, severity: str = "warning") -> None:
        """Say what a person has to look at, with the lines to write."""
        found = replace(_finding(self.reported_code, file, node, message), advice=advice, severity=severity)
        self.findings.setdefault(file.name, []).append(found)


def _finding(code: str, file: File, node: Any, message: str) -> Finding:
    if node is None:
        return Finding(code, "", 1, 1, 1, message)
    span = (file.index.start(node), file.index.end(node))
    end = node.end_lineno if not hasattr(node, "body") or isinstance(node.body, str) else node.lineno
    return Finding(code, "", node.lineno, end, node.col_offset + 1, message, span=span)
