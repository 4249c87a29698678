"""summary.json."""

from __future__ import annotations

import json
from collections import Counter

from migrator import __version__
from migrator.findings.finding import Finding, Fix, Result
from migrator.report.tally import Tally, summary_text

RESULT = Result(
    "a.py",
    findings=(
        Finding("NPU101", "m", 1, 1, 1, 2, api="torch.cuda", fix=Fix((), "unsafe", made=True)),
        Finding("NPU501", "m", 2, 1, 2, 2, "error", api="torch.x", status="absent"),
        Finding("NPU501", "m", 3, 1, 3, 2, "warning", api="torch.x", status="partial"),
    ),
    left_alone=4,
)


def summary() -> str:
    rows = Counter({"change_list.csv": 1, "unsupported_api.csv": 2, "skipped_files.csv": 1})
    tally = Tally({}, rows=rows, frameworks={"torch": 2})
    tally.add(RESULT, changed=True)
    tally.add(Result("b.py", skipped="why"), changed=False)
    return summary_text(tally, "2.6.0", {"input": "训练"}, 1)


def test_numbers() -> None:
    assert json.loads(summary()) == {
        "schema": 1,
        "npumigrate": __version__,
        "torch": "2.6.0",
        "options": {"input": "训练"},
        "exit_code": 1,
        "entry": "",
        "frameworks": {"torch": 2},
        "files": {"seen": 2, "changed": 1, "skipped": 1, "other": 0, "other_changed": 0},
        "changes": {"total": 1, "unsafe": 1, "by_rule": {"NPU101": {"name": "", "total": 1, "unsafe": 1}}},
        "findings": {
            "total": 2,
            "by_severity": {"blocker": 0, "error": 1, "warning": 1, "info": 0},
            "by_rule": {"NPU501": {"name": "", "total": 2}},
        },
        "left_alone": 4,
        "reports": {
            "change_list.csv": 1,
            "unsupported_api.csv": 2,
            "unknown_api.csv": 0,
            "cuda_op_list.csv": 0,
            "manual_review.csv": 0,
            "skipped_files.csv": 1,
        },
    }


def test_equal_runs_give_equal_bytes() -> None:
    assert summary() == summary()
