"""api_db/custom_ops.csv: the APIs that only torch_npu has, and what they stand for."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.derive.wheel_names import read_versions

COLUMNS = ("api", "from", "to", "kind", "replaces", "replaces_source", "use_instead", "evidence")


def derive(facts: Path, api_db: Path) -> None:
    """Write custom_ops.csv.

    ``replaces_source`` tells a documented replacement (docs, docs-affinity)
    from one that only the names suggest (name). ``use_instead`` is what a
    deprecated API gave way to, `none` where nothing took its place.
    """
    order = [row["torch"] for row in read_versions(api_db)]
    lines: list[Sequence[str]] = []
    with open(facts / "custom_api.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            held: dict[str, tuple[str, ...]] = dict.fromkeys(row["torch_versions"].split("|"), ())
            rest = (
                row["kind"],
                row["replaces"].replace("|", " "),
                row["replaces_source"].replace("name-inferred", "name"),
                row["deprecated_use_instead"],
                row["evidence"].replace("|", " "),
            )
            lines += [(row["api"], first, last, *rest) for first, last, _ in tables.ranges(held, order)]
    tables.write(api_db / "custom_ops.csv", COLUMNS, lines)
