"""What the findings of a run add up to: the numbers of ``summary.json`` and the terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrator import __version__
from migrator.files.document import is_notebook
from migrator.findings.finding import SEVERITIES, Result, Severity
from migrator.matchers.packs import Rule
from migrator.report.csv_tables import file_of, listed, report_of, tables_of

_PLACES_KEPT = 3
SCHEMA = 1  # of summary.json


@dataclass
class OpenGroup:
    """What one rule leaves to a person at one severity: how often, and the first places.

    ``api`` and ``message`` are what all its findings have in common, the message with
    … for the API; empty where they differ.
    """

    severity: Severity
    code: str
    api: str
    message: str
    count: int = 0
    places: list[tuple[str, str]] = field(default_factory=list)  # API, file:line
    reports: set[str] = field(default_factory=set)


@dataclass
class Tally:
    """The sums over all files that were added, in one command or in several analysis modes (``runs``)."""

    rules: Mapping[str, Rule]
    runs: tuple[str, ...] = ("migrate",)
    seen: int = 0
    notebooks: bool = False  # some of them are
    changed: int = 0
    others_changed: int = 0  # not Python
    skipped: int = 0
    left_alone: int = 0
    frameworks: Mapping[str, int] = field(default_factory=dict)  # how many files are of which
    other_files: int = 0  # not Python, unchanged, and mention CUDA
    first_skipped: list[tuple[str, str]] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)  # changes by rule
    unsafe: Counter[str] = field(default_factory=Counter)  # those of them that a person should look at
    rows: Counter[str] = field(default_factory=Counter)  # of the tables, where they were written
    groups: dict[tuple[Severity, str], OpenGroup] = field(default_factory=dict)

    def add(self, result: Result, changed: bool) -> None:
        """Count one file."""
        self.seen += not (result.left or result.type)
        self.notebooks |= is_notebook(result.name)
        self.changed += changed and not result.type
        self.others_changed += bool(changed and result.type)
        self.left_alone += result.left_alone
        if result.skipped:
            self.skipped += 1
            if len(self.first_skipped) < _PLACES_KEPT:
                self.first_skipped.append((result.name, result.skipped))
        elif result.left:
            self.other_files += 1
        for finding in listed(result):
            if finding.fixed:
                self.made[finding.code] += 1
                if finding.safety == "unsafe":
                    self.unsafe[finding.code] += 1
                continue
            key = (finding.severity, finding.code)
            message = finding.message.replace(finding.api, "…") if finding.api else finding.message
            group = self.groups.setdefault(key, OpenGroup(*key, finding.api, message))
            group.count += 1
            group.message = group.message if group.message == message else ""
            group.api = group.api if group.api == finding.api else ""
            group.reports.add(report_of(finding, self.runs))
            if len(group.places) < _PLACES_KEPT:
                group.places.append((finding.api, f"{file_of(result.name, finding)}:{finding.line}"))

    def changes(self) -> int:
        """How many changes were made."""
        return sum(self.made.values())

    def changes_by_rule(self) -> list[tuple[str, int, int]]:
        """Code, all changes and unsafe changes of each rule, the most frequent first."""
        table = [(code, count, self.unsafe[code]) for code, count in self.made.items()]
        return sorted(table, key=lambda row: (-row[1], row[0]))


def summary_text(
    tally: Tally, torch: str, options: Mapping[str, Any], exit_code: int, entry: str = ""
) -> str:
    """The text of ``summary.json``. It names no time, duration or machine: equal runs give equal bytes."""
    severities, by_rule = Counter(dict.fromkeys(reversed(SEVERITIES), 0)), Counter[str]()
    for group in tally.groups.values():
        severities[group.severity] += group.count
        by_rule[group.code] += group.count
    names = {code: tally.rules[code].name if code in tally.rules else "" for code in by_rule | tally.made}
    found = {code: {"name": names[code], "total": total} for code, total in sorted(by_rule.items())}
    content = {
        "schema": SCHEMA,
        "npumigrate": __version__,
        "torch": torch,
        "options": dict(options),
        "exit_code": exit_code,
        "entry": entry,
        "frameworks": dict(sorted(tally.frameworks.items())),
        "files": {
            "seen": tally.seen,
            "changed": tally.changed,
            "skipped": tally.skipped,
            "other": tally.other_files,
            "other_changed": tally.others_changed,
        },
        "changes": {
            "total": tally.changes(),
            "unsafe": sum(tally.unsafe.values()),
            "by_rule": {
                code: {"name": names[code], "total": total, "unsafe": unsafe}
                for code, total, unsafe in sorted(tally.changes_by_rule())
            },
        },
        "findings": {"total": sum(severities.values()), "by_severity": severities, "by_rule": found},
        "left_alone": tally.left_alone,
        "reports": {name: tally.rows[name] for name in tables_of(tally.runs)},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
