"""What to change, by expected gain: the signs of ``reports/profile.yaml``, and what a recorded run says there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.insight.rows import size
from migrator.language import N_, _
from migrator.profile.model import Memory, Profile
from migrator.profile.streams import ProfileError, content

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Advice:
    """One thing to change. ``gain`` is in microseconds of a step or, of memory, in bytes; 0 is not known."""

    sign: str
    gain: float
    share: float
    unit: str
    what: str
    do: str
    places: tuple[str, ...] = ()
    seen: list[str] = field(default_factory=list)


def insight_rows(folder: Path) -> Rows:
    """The rows of ``npu_insight.json`` in a result, or in its folder of reports. Raises ProfileError."""
    for place in (folder, folder / "migration_report", folder / "npu_insight"):
        if (place / "npu_insight.json").is_file():
            read = content(place / "npu_insight.json", lambda _line: None).get("rows")
            return [row for row in read if isinstance(row, dict)] if isinstance(read, list) else []
    raise ProfileError(
        N_("--insight: no npu_insight.json in {folder}; npumigrate verify --insight writes it"), folder=folder
    )


def all_advice(profile: Profile, rows: Rows) -> list[Advice]:
    """Everything to change, the largest gain first; then what is about memory."""
    found = list(_of_time(profile, rows))
    found.sort(key=lambda one: -one.gain)
    return [*found, *(one for memory in profile.memory for one in _of_memory(memory, profile.settings))]


def _of_time(profile: Profile, rows: Rows) -> Iterator[Advice]:
    for sign, text in reports_yaml("profile.yaml")["signs"].items():
        fact = profile.facts.get(sign)
        if fact is None or fact.amount < text["least"] * fact.whole:
            continue
        gain = text["gain"] * fact.amount
        said = _(str(text["what"]), what=fact.what or "?")
        seen = [line for place in fact.places for line in seen_at(rows, place)]
        yield Advice(sign, gain, gain / fact.whole, "us", said, _(str(text["do"])), fact.places, seen)


def _of_memory(memory: Memory, settings: Mapping[str, str]) -> Iterator[Advice]:
    amounts = {
        "refused": memory.refused,
        "fragmented": memory.unused,
        "still-fragmented": memory.unused,
        "workspace": memory.besides.get("WORKSPACE", 0.0),
        "hccl": memory.besides.get("HCCL", 0.0),
    }
    allocator = settings.get("PYTORCH_NPU_ALLOC_CONF", "") + settings.get("PYTORCH_ALLOC_CONF", "")
    whole = memory.reserved or 1.0
    for sign, text in reports_yaml("profile.yaml")["memory"].items():
        done, wanted = text.get("unless"), text.get("when")
        if (
            amounts[sign] <= text["least"] * whole
            or (done and done in allocator)
            or (wanted or "") not in allocator
        ):
            continue
        values = {"device": memory.device, "amount": size(amounts[sign]), "reserved": size(memory.reserved)}
        gain = text["gain"] * amounts[sign]
        places = tuple(filter(None, (one.place for one in memory.holders[:3])))
        said = _(str(text["what"]), **values)
        yield Advice(sign, gain, gain / whole, "bytes", said, _(str(text["do"])), places)


def seen_at(rows: Rows, place: str) -> list[str]:
    """What a recorded run on emulated NPUs says of a line of the program."""
    where = place.partition(" ")[0]
    found = []
    for row in rows:
        mine = f"{row.get('file')}:{row.get('line')}"
        if row.get("file") and (where == mine or where.endswith(f"/{mine}")):
            found.append(f"{mine}: {row.get('message')}. {row.get('advice')}".strip())
    return found[:3]
