"""The output formats of ``npumigrate lint``: one module each, loaded when it is asked for.

A module has one public function, ``write(report, stream)``. To add a format, add its
name here and the module beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Callable, TextIO

if TYPE_CHECKING:
    from migrator.core.cells import PlacedEdit
    from migrator.findings.finding import Finding
    from migrator.matchers.packs import Rule

FORMATS = (
    *("full", "concise", "grouped", "json", "json-lines"),
    *("sarif", "github", "gitlab", "junit", "azure", "pylint", "rdjson", "html"),
)


@dataclass(frozen=True)
class LintReport:
    """The findings of a run, and what may be told of them.

    ``lines`` gives the source lines of the file, or of the notebook's cell, that a finding lies in, without
    line ends; empty where they are gone. ``edits`` gives those of a finding's fix with lines and columns.
    ``rules`` describes every enabled rule by its code, and is only called by formats that need it, because
    reading all rules' texts takes time. ``fixed`` counts what was fixed, by file and code; ``notes`` are
    lines for people, such as how many findings a baseline holds.
    """

    findings: Sequence[Finding]
    lines: Callable[[Finding], Sequence[str]]
    edits: Callable[[Finding], Sequence[PlacedEdit]]
    rules: Callable[[], Mapping[str, Rule]]
    color: bool = False
    width: int = 0  # of the terminal, where the findings are printed on one: words are wrapped there
    fixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unsafe_fixes: bool = False  # the user asked for unsafe fixes: they count as fixable
    show_fixes: bool = False
    fix_only: bool = False  # what was not fixed is not told
    notes: Sequence[str] = ()
    summary: bool = True  # whether lines for people follow the findings
    complete: bool = True  # whether no findings mean that there are none


def writer(name: str) -> Callable[[LintReport, TextIO], None]:
    """The ``write`` function of a format, one of ``FORMATS``."""
    write: Callable[[LintReport, TextIO], None]
    write = import_module(f"{__name__}.{name.replace('-', '_')}").write
    return write
