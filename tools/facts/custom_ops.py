"""api_db/custom_ops.csv: the APIs that only torch_npu has, and what they stand for."""

from __future__ import annotations

import csv
from pathlib import Path

from migrator.api_support.releases import custom_ops

# Operators of torch for quantized tensors that the facts took for torch_npu's own.
_NOT_OWN = ("torch_npu._empty_affine_quantized", "torch_npu.dequantize", "torch_npu.int_repr")


def derive(facts: Path, api_db: Path) -> None:
    """Write custom_ops.csv.

    ``replaces_source`` tells a documented replacement (docs, docs-affinity)
    from one that only the names suggest (name). ``use_instead`` is what a
    deprecated API gave way to, `none` where nothing took its place.
    """
    held: custom_ops.Held = {}
    rest: custom_ops.Rest = {}
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
    custom_ops.write(api_db, held, rest)
