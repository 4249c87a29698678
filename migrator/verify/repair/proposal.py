"""A change that a runtime rule proposes, and what it is made from."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrator.findings.finding import Edit
from migrator.verify.diagnosis import Failure
from migrator.verify.repair.site import Code, Site, Sources
from migrator.verify.stacks import Stack


@dataclass(frozen=True)
class Seen:
    """What a run showed: a failure with its places in the source, or where its processes waited."""

    sources: Sources
    failure: Failure | None = None
    stacks: Sequence[Stack] = ()

    @property
    def waiting(self) -> list[tuple[str, str, int]]:
        """Who waits, or was waiting when its peer had gone, and the file and line of the program."""
        folder = self.sources.folder
        found = [(stack.who, own[1]) for stack in self.stacks if (own := stack.own(folder)) is not None]
        if found:
            return [(who, call.file, call.line) for who, call in found]
        frame = self.failure.own(folder) if self.failure else None
        return [(self.failure.who, frame.file, frame.line)] if self.failure and frame else []

    @property
    def sites(self) -> list[Site]:
        """The program's own calls, the innermost first."""
        return self.sources.sites(self.failure.frames) if self.failure else []


@dataclass(frozen=True)
class NoOptions:
    """The options of a fix that has none."""


@dataclass(frozen=True)
class Proposal:
    """Edits of one file. ``evidence``: what was seen there; ``origin``: the line that the value came from."""

    code: Code
    node: ast.expr | ast.stmt
    edits: tuple[Edit, ...]
    evidence: str
    origin: str = ""


def replacing(code: Code, node: ast.expr, text: str, evidence: str, origin: str = "") -> Proposal:
    """A proposal that puts a text in the place of an expression."""
    return Proposal(code, node, (code.replaced(node, text),), evidence, origin)
