"""GitLab's code quality report, as ``artifacts:reports:codequality`` takes it."""

from __future__ import annotations

import json
import os
from typing import TextIO

from migrator.lint.diagnostic import LintReport
from migrator.reporting.lint_formats.style import words_of
from migrator.reporting.lint_formats.uris import fingerprints, relative

_SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def write(report: LintReport, stream: TextIO) -> None:
    """One array with an object for each finding; paths are those in GitLab's checkout."""
    content = [
        {
            "check_name": item.code,
            "description": f"{item.code}: {words_of(item)}",
            "severity": _SEVERITIES[item.severity],
            "fingerprint": fingerprint,
            "location": {
                "path": relative(item.path, os.environ.get("CI_PROJECT_DIR")),
                "positions": {
                    "begin": {"line": item.row, "column": item.column},
                    "end": {"line": item.end_row, "column": item.end_column},
                },
            },
        }
        for item, fingerprint in zip(report.diagnostics, fingerprints(report))
    ]
    json.dump(content, stream, indent=2)
    stream.write("\n")
