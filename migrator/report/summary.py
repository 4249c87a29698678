"""``summary.json``: the numbers of a run for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from migrator import __version__
from migrator.findings.finding import SEVERITIES
from migrator.report.columns import tables_of
from migrator.report.tally import Tally

SCHEMA = 1


def summary_text(
    tally: Tally, torch: str, options: Mapping[str, Any], exit_code: int, entry: str = ""
) -> str:
    """The JSON text. It names no time, duration or machine: equal runs give equal bytes."""
    severities = dict.fromkeys(reversed(SEVERITIES), 0)
    open_by_rule: dict[str, dict[str, Any]] = {}
    for group in sorted(tally.groups.values(), key=lambda group: group.code):
        severities[group.severity] += group.count
        open_rule = open_by_rule.setdefault(group.code, {"name": tally.rule_name(group.code), "total": 0})
        open_rule["total"] += group.count
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
                code: {"name": tally.rule_name(code), "total": total, "unsafe": unsafe}
                for code, total, unsafe in sorted(tally.changes_by_rule())
            },
        },
        "findings": {
            "total": sum(severities.values()),
            "by_severity": severities,
            "by_rule": open_by_rule,
        },
        "left_alone": tally.left_alone,
        "reports": {name: tally.rows[name] for name in tables_of(tally.runs)},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
