"""How a file is named for other programs: from the folder of the run, with slashes."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from migrator.report.lint_report import LintReport


def relative(path: str, root: str | None = None) -> str:
    """The path from ``root`` or the current folder; the whole path of a file outside of it; ``-`` stays."""
    if path == "-":
        return path
    whole = os.path.abspath(path)
    try:
        inside = os.path.relpath(whole, root or os.curdir)
    except ValueError:  # another drive
        return whole.replace(os.sep, "/")
    return (whole if inside.startswith(os.pardir + os.sep) else inside).replace(os.sep, "/")


def uri(path: str) -> str:
    """A URI reference: relative for files below the current folder, else with ``file://``."""
    name = relative(path)
    return Path(name).as_uri() if os.path.isabs(name) else quote(os.fsencode(name))


def fingerprints(report: LintReport) -> list[str]:
    """For each finding a text that stays when lines move, and that no other finding of the run has.

    It is made of file, rule, and the source line without its indentation; equal ones are counted.
    """
    seen: dict[str, int] = {}
    result = []
    for item in report.findings:
        lines = report.lines(item)
        line = lines[item.line - 1] if 0 < item.line <= len(lines) else ""  # it may be gone
        parts = (relative(item.file), str(item.cell), item.code, item.api, line.strip())
        key = sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        number = seen[key] = seen.get(key, 0) + 1
        result.append(key if number == 1 else f"{key}-{number}")
    return result
