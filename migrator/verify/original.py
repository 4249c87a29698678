"""Where the project lies that a result of npumigrate was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

_REPORTS = "migration_report"
_INPUT = re.compile(r" INFO input (.+); Settings\(")


class OriginalError(Exception):
    """The original cannot be found; the text says what to do."""


def find_original(migrated: Path) -> Path:
    """Return the folder or file that ``migrated`` was made from.

    The log of the migration knows its path; ``summary.json`` its name, which is then looked for beside
    the result and beside the folder that the result is in.

    Raises OriginalError.
    """
    reports = migrated / _REPORTS
    try:
        summary = json.loads((reports / "summary.json").read_text(encoding="utf-8"))
        name = str(summary["options"]["input"])
    except (OSError, ValueError, KeyError, TypeError):
        raise OriginalError(
            f"{migrated} has no {_REPORTS}/summary.json: --original DIR names the original"
        ) from None
    candidates = [migrated.parent / name, migrated.parent.parent / name]
    try:
        paths = _INPUT.findall((reports / "npumigrate.log").read_text(encoding="utf-8"))
        candidates = [Path(path) for path in reversed(paths)] + candidates
    except OSError:
        pass
    for path in candidates:
        if path.exists() and path.resolve() != migrated.resolve():
            return path
    raise OriginalError(f"the original {name!r} of {migrated} is not to be found: --original DIR names it")


def command_for(command: Sequence[str], migrated: Path, original: Path) -> list[str]:
    """Return a command with the paths into the result changed to those into the original."""
    found = str(migrated.resolve())
    return [
        part.replace(found, str(original.resolve()))
        if re.search(re.escape(found) + r"(?=$|/)", part)
        else part
        for part in command
    ]
