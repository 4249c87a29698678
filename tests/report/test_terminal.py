"""The summary on the terminal."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from migrator.api_support.verdict_type import Verdict
from migrator.findings.finding import Finding, Fix, Result
from migrator.report.tally import Tally
from migrator.report.terminal import show_summary


@dataclass(frozen=True)
class Rule:
    name: str
    summary: str


ABSENT = Verdict("torch.cuda.nvtx.mark", "absent")
RULES = {
    "NPU101": Rule("cuda-module", "torch.cuda has an NPU form for this [name]"),
    "NPU110": Rule(
        "tensor-cuda", "a very long summary of a rule that goes on and on and will not fit into the line"
    ),
    "NPU501": Rule("absent-api", "an NPU has no such API"),
    "NPU701": Rule("slow", "this is slow on an NPU"),
}


def found(code: str, line: int, **values: Any) -> Finding:
    api = values.pop("api", "torch.cuda.x")
    return Finding(code, values.pop("message", ""), line, 1, line, 2, api=api, **values)


def changed(code: str, line: int, safety: str) -> Finding:
    return found(code, line, fix=Fix((), safety, made=True))


def tally_of(*results: Result) -> Tally:
    tally = Tally(RULES)
    for result in results:
        tally.add(result, changed=any(finding.fixed for finding in result.findings))
    return tally


def shown(tally: Tally, written: bool = True, width: int = 80) -> str:
    stream = io.StringIO()
    result = Path("out/p_msft") if written else None
    reports = Path("out/p_msft/migration_report") if written else None
    console = Console(file=stream, width=width, highlight=False)
    show_summary(console, tally, "p for torch 2.6.0", 0, result, reports)
    return stream.getvalue()


FULL = tally_of(
    Result(
        "train.py",
        findings=(
            changed("NPU101", 1, "safe"),
            changed("NPU101", 2, "safe"),
            changed("NPU110", 3, "unsafe"),
            found("NPU701", 4, severity="info"),
            found("NPU501", 5, severity="error", verdict=ABSENT, api="torch.cuda.nvtx.mark"),
        ),
    ),
    Result("old.py", skipped="line 3: invalid syntax"),
)


def test_a_whole_summary() -> None:
    assert shown(FULL) == (
        """\
p for torch 2.6.0
Python files: 2 seen, 1 changed, 1 skipped

Changes                                                            count  unsafe
NPU101   torch.cuda has an NPU form for this [name]                    2
NPU110   a very long summary of a rule that goes on and on and         1       1
         will not fit into the line
all                                                                    3       1

Manual review
error    NPU501  an NPU has no such API
         torch.cuda.nvtx.mark: train.py:5
info     NPU701  this is slow on an NPU
         torch.cuda.x: train.py:4
All findings: manual_review.csv, unsupported_api.csv
Review 1 unsafe change (change_list.csv, Safety = unsafe)

Left unchanged
old.py: line 3: invalid syntax

Result   out/p_msft
Reports  out/p_msft/migration_report
"""
    )


def test_without_a_result_it_points_to_no_file() -> None:
    assert ".csv" not in shown(FULL, written=False)


def test_nothing_to_do_is_two_lines() -> None:
    text = shown(tally_of(Result("a.py")), written=False)
    assert text == "p for torch 2.6.0\nPython files: 1 seen, 0 changed, 0 skipped\n"


def test_errors_come_first_and_the_rest_is_counted() -> None:
    findings = [found(f"NPU7{number:02}", number, severity="info") for number in range(1, 20)]
    findings += [found(f"NPU5{number:02}", number, severity="error") for number in range(1, 4)]
    text = shown(tally_of(Result("a.py", findings=tuple(findings))))
    lines = text.splitlines()
    start = lines.index("Manual review")
    assert [line.split()[0] for line in lines[start + 1 : start + 7 : 2]] == ["error"] * 3
    assert "and 16 more by 16 rules" in text
    assert len(lines) < 24


def test_many_rules_are_cut() -> None:
    findings = tuple(changed(f"NPU1{number:02}", number + 1, "safe") for number in range(40))
    text = shown(tally_of(Result("a.py", findings=findings)))
    assert "26 more rules" in text
    assert len(text.splitlines()) < 30


def test_it_fits_80_columns_and_uses_wider_ones() -> None:
    assert max(map(len, shown(FULL).splitlines())) <= 80
    assert "will not fit into the" in shown(FULL, width=110)


def test_places_and_apis_of_one_rule() -> None:
    findings = [found("NPU501", line, severity="error", api=f"torch.{line}") for line in (1, 2, 3, 4)]
    text = shown(tally_of(Result("a.py", findings=tuple(findings))))
    assert "error    NPU501  4 × an NPU has no such API" in text
    assert "torch.1 a.py:1, torch.2 a.py:2, torch.3 a.py:3, and 1 more" in text


def test_names_are_whole_and_what_is_said_of_one_api_stands_for_the_summary() -> None:
    apis = ("torch.a", "torch.b")
    findings = [Finding("NPU501", f"{api} is gone", 1, 1, 1, 2, "error", api=api) for api in apis]
    assert "NPU501  2 × an NPU has no such API\n         torch.a a.py:1, torch.b a.py:1\n" in shown(
        tally_of(Result("a.py", findings=tuple(findings)))
    )
    assert "NPU501  torch.a is gone\n         a.py:1\n" in shown(
        tally_of(Result("a.py", findings=tuple(findings[:1])))
    )


def test_apis_that_are_too_long_for_the_line_stand_on_two() -> None:
    findings = [
        found("NPU501", line, severity="error", api="torch." + "x" * 30 + str(line)) for line in (1, 2)
    ]
    text = shown(tally_of(Result("a.py", findings=tuple(findings))))
    assert f"\n         {findings[0].api} a.py:1, {findings[1].api} a.py:2\n" not in text
    assert findings[1].api in text
