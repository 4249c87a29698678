"""``summary.json``: the numbers of a run for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from migrator import __version__
from migrator.report.columns import tables_of
from migrator.report.tally import SEVERITIES, Tally

SCHEMA = 1


def summary_text(
    tally: Tally, torch: str, options: Mapping[str, Any], exit_code: int, entry: str = ""
) -> str:
    """The JSON text. It names no time, duration or machine: equal runs give equal bytes."""
    severities = dict.fromkeys(SEVERITIES, 0)
    for group in tally.groups.values():
        severities[group.severity] = severities.get(group.severity, 0) + group.count
    content = {
        "schema": SCHEMA,
        "npumigrate": __version__,
        "torch": torch,
        "options": dict(options),
        "exit_code": exit_code,
        "entry": entry,
        "files": {
            "seen": tally.seen,
            "changed": tally.changed,
            "skipped": tally.skipped,
            "other": tally.other_files,
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
            "by_rule": _open_by_rule(tally),
        },
        "left_alone": tally.left_alone,
        "reports": {name: tally.rows[name] for name in tables_of(tally.runs)},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _open_by_rule(tally: Tally) -> dict[str, dict[str, Any]]:
    by_rule: dict[str, dict[str, Any]] = {}
    for group in sorted(tally.groups.values(), key=lambda group: group.code):
        entry = by_rule.setdefault(group.code, {"name": tally.rule_name(group.code), "total": 0})
        entry["total"] += group.count
    return by_rule
