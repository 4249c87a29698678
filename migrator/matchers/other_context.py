"""What a matcher of files that are no Python is given, and how it says what it found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from migrator.api_support.versions import TorchVersion
from migrator.files.file_types import is_of_ci
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match, finding_at
from migrator.matchers.packs import Rule
from migrator.other_files.index import Span, TextIndex
from migrator.project.project import Project

if TYPE_CHECKING:
    from migrator.project.programs import Vocabularies

_NOWHERE = ast.Pass()  # the node of a match in a text that has none


@dataclass(frozen=True)
class TextContext:
    """One file that is no Python, and what the run knows beside it; ``hardware`` as in ``FileContext``.

    ``vocabularies`` gives what the rule packs know of places in Python, for device strings and for backends.
    """

    index: TextIndex
    version: TorchVersion
    project: Project
    hardware: str = ""
    vocabularies: Optional[Callable[[], Vocabularies]] = None


def found_in_text(
    context: TextContext,
    rule: Rule,
    span: Span,
    *,
    api: str,
    edits: Sequence[Edit] = (),
    message: str = "",
    advice: str = "",
    severity: str = "",
    safety: str = "",
) -> Match:
    """A finding of a rule at a place, with the rule's own words where none are given.

    What a CI system runs on which machines is not in the project: there only safe fixes are made.
    """
    advice = advice or rule.advice
    if edits and (safety or rule.fix) != "safe" and is_of_ci(context.index.name):
        written = " ".join(edit.text.strip() for edit in edits).strip()
        advice = advice or _(
            "Write {written} here, where the job's machine has NPUs.", written=written or "nothing"
        )
        edits = ()
    finding = finding_at(rule, context.index.lines, span, api, edits, message, advice, severity, safety)
    return Match(finding, _NOWHERE, needs_npu=False)
