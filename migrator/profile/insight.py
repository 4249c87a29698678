"""What a recorded run on emulated NPUs says of the lines that a profile names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from migrator.language import N_
from migrator.profile.streams import ProfileError, content

Rows = list[dict[str, Any]]


def insight_rows(folder: Path) -> Rows:
    """The rows of ``npu_insight.json`` in a result, or in its folder of reports. Raises ProfileError."""
    for place in (folder, folder / "migration_report", folder / "npu_insight"):
        if (place / "npu_insight.json").is_file():
            found = content(place / "npu_insight.json", []).get("rows")
            return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    said = N_("--insight: no npu_insight.json in {folder}; npumigrate verify --insight writes it")
    raise ProfileError(said, folder=folder)


def seen_at(rows: Rows, place: str) -> list[str]:
    """What the rows say of a line of the program, such as ``/a/model.py:41 forward``."""
    where, found = f"/{place.partition(' ')[0]}", []
    for row in rows:
        mine = f"{row.get('file')}:{row.get('line')}"
        if row.get("file") and where.endswith(f"/{mine}"):
            found.append(f"{mine}: {row.get('message')}. {row.get('advice')}".strip())
    return found[:3]
