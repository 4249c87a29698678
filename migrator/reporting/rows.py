"""Which report a finding goes to, and what stands in its row."""

from __future__ import annotations

from migrator.finding import Finding

CHANGES = "change_list.csv"
UNSUPPORTED = "unsupported_api.csv"
UNKNOWN = "unknown_api.csv"
CUDA_OPERATORS = "cuda_op_list.csv"
REVIEW = "manual_review.csv"
SKIPPED = "skipped_files.csv"

_CUDA_OPERATOR_CODES = "NPU65"
_UNSUPPORTED = {"absent", "unsupported", "fallback", "partial"}


def report_of(finding: Finding) -> str:
    """The one CSV file in which a finding is listed."""
    if finding.fixed:
        return CHANGES
    if finding.code.startswith(_CUDA_OPERATOR_CODES):
        return CUDA_OPERATORS
    if finding.status in _UNSUPPORTED:
        return UNSUPPORTED
    return UNKNOWN if finding.status == "unknown" else REVIEW


def row_of(file: str, finding: Finding) -> dict[str, str]:
    """The values of a finding under the names that ``reports/columns.yaml`` uses."""
    return {
        "file": file,
        "line": str(finding.line),
        "end_line": str(finding.end_line),
        "operation": finding.operation,
        "message": finding.message,
        "code": finding.code,
        "before": finding.before,
        "after": finding.after,
        "safety": finding.safety,
        "api": finding.api,
        "tips": _tips(finding),
        "status": finding.status,
        "severity": finding.severity,
        "advice": finding.advice,
    }


def _tips(finding: Finding) -> str:
    if not finding.advice or finding.advice in finding.message:
        return finding.message
    return f"{finding.message.rstrip('.')}. {finding.advice}" if finding.message else finding.advice
