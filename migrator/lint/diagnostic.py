"""One line of a lint run, and the whole of what it has to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Callable, Literal, Optional

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")  # the gravest last
Applicability = Literal["safe", "unsafe"]


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: 1-based row and column, the column in characters."""

    row: int
    column: int


@dataclass(frozen=True)
class TextEdit:
    """Replace what is between two places of the file (or of the notebook's cell ``cell``)."""

    start: Position
    end: Position
    content: str
    cell: Optional[int] = None


@dataclass(frozen=True)
class Fix:
    """What would repair a finding: all of the edits, or none."""

    applicability: Applicability
    message: str
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True)
class Diagnostic:
    """One finding, with places in the file as it is on the disk.

    ``path`` is spelled as the user gave it. ``end_row`` and ``end_column`` are
    behind the last character. ``rule`` is the rule's name in words-with-dashes;
    ``advice`` one line of what to do, empty where the message says it.
    ``noqa_row`` is the row whose end takes a ``# noqa`` comment, None where no
    comment can suppress it. In a notebook ``cell`` is the 1-based number of the
    cell among all cells, and rows count inside of it.
    """

    path: str
    row: int
    column: int
    end_row: int
    end_column: int
    code: str
    rule: str
    severity: Severity
    message: str
    advice: str = ""
    fix: Optional[Fix] = None
    noqa_row: Optional[int] = None
    url: str = ""
    cell: Optional[int] = None
    api: str = ""  # the qualified name that it is about, where there is one

    @property
    def span(self) -> tuple[Position, Position]:
        """Where it starts, and the place behind its last character."""
        return Position(self.row, self.column), Position(self.end_row, self.end_column)

    @property
    def safely_fixable(self) -> bool:
        """Whether ``--fix`` alone repairs it."""
        return self.fix is not None and self.fix.applicability == "safe"


@dataclass(frozen=True)
class Checked:
    """The findings that remain in a text, and how many its comments suppress.

    ``trouble`` is the reason for which the file could not be looked at.
    """

    found: tuple[Diagnostic, ...] = ()
    suppressed: int = 0
    trouble: str = ""


@dataclass(frozen=True)
class RuleText:
    """What the formats may tell of a rule."""

    code: str
    name: str
    summary: str
    severity: Severity
    why: str
    fix: str  # safe | unsafe | none
    url: str


@dataclass(frozen=True)
class LintReport:
    """What a format is given to write.

    ``lines`` gives the source lines of the file, or of the notebook's cell, that
    a diagnostic lies in, without line ends; empty where they are gone. ``rules``
    describes every enabled rule by its code, and is only called by formats that
    need it, because reading all rules' texts takes time. ``safe`` and
    ``unsafe`` count what could be fixed, ``fixed`` what was, by file and code;
    ``notes`` are lines for people, such as how many findings a baseline holds.
    """

    diagnostics: Sequence[Diagnostic]
    lines: Callable[[Diagnostic], Sequence[str]]
    rules: Callable[[], Mapping[str, RuleText]]
    color: bool = False
    fixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unsafe_fixes: bool = False  # the user asked for unsafe fixes: they count as fixable
    show_fixes: bool = False
    fix_only: bool = False  # what was not fixed is not told
    notes: Sequence[str] = ()
    summary: bool = True  # whether lines for people follow the findings
    files: int = 0  # how many files were looked at
    complete: bool = True  # whether no findings mean that there are none
