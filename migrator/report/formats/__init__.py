"""The output formats of ``npumigrate lint``: a function each, whose module is loaded on demand.

``json-lines`` is ``write_json_lines(report, stream)``: formats for people are in ``text.py``, others in
``programs.py``. To add one, add its name here and its function there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Callable, NamedTuple, TextIO

if TYPE_CHECKING:
    from migrator.core.changes import PlacedEdit
    from migrator.findings.finding import Finding
    from migrator.matchers.packs import Rule

FOR_PEOPLE = ("short", "full", "concise", "grouped")
# What people read too, in their language; all other formats are for programs.
SPOKEN = (*FOR_PEOPLE, "github", "azure", "html")
FORMATS = (
    *(*FOR_PEOPLE, "json", "json-lines"),
    *("sarif", "github", "gitlab", "junit", "azure", "pylint", "rdjson", "html"),
)


class LintReport(NamedTuple):
    """The findings of a run, and what a format may report of them.

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
    fixed: Mapping[str, Mapping[str, int]] = {}
    unsafe_fixes: bool = False  # the user asked for unsafe fixes: they count as fixable
    show_fixes: bool = False
    fix_only: bool = False  # what was not fixed is not reported
    notes: Sequence[str] = ()
    summary: bool = True  # whether lines for people follow the findings
    complete: bool = True  # whether no findings mean that there are none


def writer(name: str) -> Callable[[LintReport, TextIO], None]:
    """The function that writes a format, one of ``FORMATS``."""
    module = import_module(f"{__name__}.{'text' if name in FOR_PEOPLE else 'programs'}")
    write: Callable[[LintReport, TextIO], None] = getattr(module, f"write_{name.replace('-', '_')}")
    return write
