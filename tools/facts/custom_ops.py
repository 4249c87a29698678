"""api_db/custom_ops.csv: the APIs that only torch_npu has, and what they stand for."""

from __future__ import annotations

import csv
from pathlib import Path

from tools.releases.registered import Held, write_own

# Operators of torch for quantized tensors that the facts took for torch_npu's own.
_NOT_OWN = ("torch_npu._empty_affine_quantized", "torch_npu.dequantize", "torch_npu.int_repr")


def derive(facts: Path, api_db: Path) -> None:
    """Write custom_ops.csv.

    ``replaces_source`` tells a documented replacement (docs, docs-affinity) from one that only the names
    suggest (name). ``use_instead`` is what a deprecated API gave way to, `none` where nothing took its place.
    """
    held: Held = {}
    rest = {}
    with open(facts / "custom_api.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["api"] in _NOT_OWN:
                continue
            held[row["api"]] = set(row["torch_versions"].split("|"))
            rest[row["api"]] = (
                row["kind"],
                row["replaces"].replace("|", " "),
                row["replaces_source"].replace("name-inferred", "name"),
                row["deprecated_use_instead"],
                row["evidence"].replace("|", " "),
            )
    write_own(api_db, held, rest)
