"""Fused alternatives that the source could use, ranked by what its lines cost in the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from migrator.core.check import check, no_fix
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.findings.finding import Finding
from migrator.insight.recorded import Place, Record, Sum
from migrator.insight.rows import Row, Run, text
from migrator.project.project import Project

KIND = "fused"
_RULES = "NPU8"


def find(run: Run, root: Path) -> Iterator[Row]:
    """A row for each place that ran."""
    records: dict[str, list[Record]] = {}
    process = max(run.processes, key=lambda each: len(each.records))
    for record in process.records:
        if record.place is not None:
            records.setdefault(record.place.file, []).append(record)
    whole = sum((record.all for record in process.records), Sum())
    for file in sorted(records):
        for finding in _findings(root, file, run):
            first, last = finding.lines
            inside = [r for r in records[file] if r.place is not None and first <= r.place.line <= last]
            amount = sum((record.all for record in inside), Sum())
            if not amount.calls:
                continue
            share = amount.bytes / max(1, whole.bytes)
            products = amount.multiply_adds / max(1, whole.multiply_adds)
            function = next((r.place.function for r in inside if r.place is not None), "")
            message = text(KIND, "missed", message=finding.message, share=share, products=products)
            place, subject = Place(file, first, function), finding.instead or finding.api
            yield Row(
                *(KIND, "info", place, subject, amount.calls, None, amount.bytes, message, finding.advice),
                ranks=(process.who,),
                share=share,
                effect=max(share, products),
                more={"rule": finding.code, "share_of_products": products},
            )


def _findings(root: Path, file: str, run: Run) -> list[Finding]:
    """What the rules on affinity alternatives find in one file; they do not ask the project around it."""
    try:
        source = document(read_bytes(root / file), file)
    except (Unreadable, OSError):
        return []
    rules = rules_for(Settings(run.version.text, select=(_RULES,), hardware=run.hardware))
    return list(check(source, rules, Project(), no_fix, write=False).findings)
