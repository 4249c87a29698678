"""What to change, by expected gain: ``reports/profile.yaml``; and what a recorded run says there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.profile.model import Profile
from migrator.profile.streams import ProfileError, content

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Advice:
    """One thing to change. ``gain`` is in microseconds of a step or, of memory, in bytes; 0 is not known."""

    sign: str
    memory: bool
    gain: float
    share: float
    what: str
    do: str
    places: list[str]
    seen: list[str]


def insight_rows(folder: Path) -> Rows:
    """The rows of ``npu_insight.json`` in a result, or in its folder of reports. Raises ProfileError."""
    for place in (folder, folder / "migration_report", folder / "npu_insight"):
        if (place / "npu_insight.json").is_file():
            found = content(place / "npu_insight.json", []).get("rows")
            return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    said = N_("--insight: no npu_insight.json in {folder}; npumigrate verify --insight writes it")
    raise ProfileError(said, folder=folder)


def advice_on(profile: Profile, rows: Rows) -> list[Advice]:
    """Everything to change, the largest gain first; then what is about memory."""
    texts, found = reports_yaml("profile.yaml")["signs"], []
    for fact in profile.facts:
        text = texts[fact.sign]
        if fact.amount <= 0 or fact.amount < text["least"] * fact.whole or fact.amount < text.get("bytes", 0):
            continue
        gain = text["gain"] * fact.amount
        said = (_(text["what"]).format(**fact.values), _(text["do"]))
        seen = [line for place in fact.places for line in seen_at(rows, place)]
        share = gain / (fact.whole or 1.0)
        found.append(Advice(fact.sign, "{amount}" in text["what"], gain, share, *said, fact.places, seen))
    return sorted(found, key=lambda one: (one.memory, -one.gain))


def seen_at(rows: Rows, place: str) -> list[str]:
    """What a recorded run on emulated NPUs says of a line of the program."""
    where, found = f"/{place.partition(' ')[0]}", []
    for row in rows:
        mine = f"{row.get('file')}:{row.get('line')}"
        if row.get("file") and where.endswith(f"/{mine}"):
            found.append(f"{mine}: {row.get('message')}. {row.get('advice')}".strip())
    return found[:3]
