"""Which report a finding goes to."""

from __future__ import annotations

import pytest

from migrator.findings.finding import Finding, Fix
from migrator.report.rows import report_of, row_of

MADE = Fix((), "safe", made=True)


def finding(**values: object) -> Finding:
    return Finding(
        **{
            "code": "NPU101",
            "api": "torch.x",
            "line": 3,
            "end_line": 4,
            "column": 1,
            "end_column": 2,
            "message": "m",
            **values,
        }
    )


@pytest.mark.parametrize(
    ("values", "report"),
    [
        ({"fix": MADE}, "change_list.csv"),
        ({"fix": MADE, "status": "partial"}, "change_list.csv"),
        ({"fix": MADE, "code": "NPU651"}, "change_list.csv"),
        ({"status": "absent"}, "unsupported_api.csv"),
        ({"status": "unsupported"}, "unsupported_api.csv"),
        ({"status": "fallback"}, "unsupported_api.csv"),
        ({"status": "partial"}, "unsupported_api.csv"),
        ({"status": "unknown"}, "unknown_api.csv"),
        ({"code": "NPU651"}, "cuda_op_list.csv"),
        ({"code": "NPU651", "status": "unsupported"}, "cuda_op_list.csv"),
        ({"code": "NPU601"}, "manual_review.csv"),
        ({}, "manual_review.csv"),
    ],
)
def test_each_finding_is_in_one_report(values, report) -> None:
    assert report_of(finding(**values)) == report


@pytest.mark.parametrize(
    ("message", "advice", "tips"),
    [
        ("It is absent", "Use mstx", "It is absent. Use mstx"),
        ("It is absent.", "Use mstx", "It is absent. Use mstx"),
        ("It is absent", "", "It is absent"),
        ("", "Use mstx", "Use mstx"),
        ("It is absent: Use mstx", "Use mstx", "It is absent: Use mstx"),
    ],
)
def test_tips_say_what_is_wrong_and_what_to_do(message, advice, tips) -> None:
    assert row_of("a.py", finding(message=message, advice=advice))["tips"] == tips
