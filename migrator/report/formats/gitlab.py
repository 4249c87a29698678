"""GitLab's code quality report, as ``artifacts:reports:codequality`` takes it."""

from __future__ import annotations

import json
import os
from typing import TextIO

from migrator.report.formats import LintReport
from migrator.report.formats.style import fingerprints, line_and_column, placed_words_of, relative

_SEVERITIES = {"blocker": "blocker", "error": "major", "warning": "minor", "info": "info"}


def write(report: LintReport, stream: TextIO) -> None:
    """One array with an object for each finding; paths are those in GitLab's checkout."""
    content = [
        {
            "check_name": item.code,
            "description": f"{item.code}: {placed_words_of(item)}",
            "severity": _SEVERITIES[item.severity],
            "fingerprint": fingerprint,
            "location": {
                "path": relative(item.file, os.environ.get("CI_PROJECT_DIR")),
                # The rows of a notebook count in the cell, and would point elsewhere in the file.
                "positions": {
                    "begin": line_and_column(item.start if item.cell is None else (1, 1)),
                    "end": line_and_column(item.end if item.cell is None else (1, 1)),
                },
            },
        }
        for item, fingerprint in zip(report.findings, fingerprints(report))
    ]
    json.dump(content, stream, indent=2)
    stream.write("\n")
