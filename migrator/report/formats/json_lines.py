"""One JSON object a line, for programs that read while the run goes on."""

from __future__ import annotations

import json
from typing import TextIO

from migrator.report.formats import LintReport
from migrator.report.formats.json import as_dict


def write(report: LintReport, stream: TextIO) -> None:
    """A line for each finding."""
    for item in report.findings:
        stream.write(json.dumps(as_dict(item, report)) + "\n")
