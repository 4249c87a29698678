"""api_db/kernels.csv: what torch_npu registers for an aten operator."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.derive.wheel_names import read_versions

COLUMNS = ("op", "from", "to", "kind", "source")


def derive(facts: Path, api_db: Path) -> None:
    """Write kernels.csv.

    A row on an overload (add.Tensor) says at which versions torch_npu has a
    kernel for it, or, where upstream has the overload and torch_npu nothing at
    all, `none`. A row on a base name without versions says what upstream makes
    of the operator where no kernel is registered: `composite` (torch builds it
    from other operators) or `none` (it needs a kernel, and runs on the CPU).
    """
    order = [row["torch"] for row in read_versions(api_db)]
    lines: list[Sequence[str]] = []
    bases = set()
    with open(facts / "npu_kernels.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # custom operators are in custom_ops.csv; autograd ones need no kernel of their own.
            if row["kind"] != "aten":
                continue
            held: dict[str, tuple[str, ...]] = dict.fromkeys(row["torch_versions"].split("|"), ())
            bases.add(row["base"])
            for first, last, _ in tables.ranges(held, order):
                # Before op-plugin (torch 2.1) the lists were kept with the sources, and
                # hold composites too: they cannot be told apart.
                lines.append((row["op"], first, last, "kernel", "torch_npu operator lists"))
    for base, kind in _without_kernel(facts).items():
        lines.append((f"{base}.*", "", "", kind, "torch 2.13 native_functions.yaml"))
    newest = order[-1]
    with open(facts / "aten_cpu_fallback_only.json", encoding="utf-8") as file:
        for name in json.load(file):
            op = name[len("aten::") :]
            # The list is of one release, so nothing is said of others.
            lines.append((op, newest, newest, "none", "torch_npu 2.13 dispatcher"))
    tables.write(api_db / "kernels.csv", COLUMNS, lines)


def _without_kernel(facts: Path) -> dict[str, str]:
    """What upstream does for a base name that has no NPU kernel at some version."""
    kinds = {"composite_implicit": "composite", "composite_explicit": "composite", "backend": "none"}
    found: dict[str, str] = {}
    for table, column in (("docs_vs_kernel", "aten_base"), ("native_api_interp", "aten_base")):
        with open(facts / f"{table}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["kernel"] in kinds:
                    found[row[column]] = kinds[row["kernel"]]
    return found
