"""api_db/kernels.csv: what torch_npu registers for an aten operator."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from tools.releases.registered import write_kernels

# The release for which upstream's operators were compared with what torch_npu registers.
_COMPARED = "2.13.0"

# Of the operators in question these have no kernel for dense tensors on the CPU in torch 2.13
# (torch._C._dispatch_has_kernel_for_dispatch_key): there is nothing to fall back to.
_NO_CPU_KERNEL = ("int_repr", "qscheme", "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_")


def derive(facts: Path, api_db: Path) -> None:
    """Write kernels.csv.

    A row on an overload (add.Tensor) says at which versions torch_npu has a kernel for it, or, where upstream
    has the overload and torch_npu nothing at all, `fallback`. A row on a base name without versions says what
    upstream makes of the operator where no kernel is registered: `composite` (torch builds it from other
    operators), `fallback` (torch_npu's fallback runs it on the CPU) or `none` (torch has no CPU kernel for
    dense tensors either).
    """
    held: dict[str, set[str]] = {}
    with open(facts / "npu_kernels.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # Before op-plugin (torch 2.1) the lists were kept with the sources, and
            # hold composites too: they look the same. Custom operators are in custom_ops.csv.
            if row["kind"] == "aten":
                held[row["op"]] = set(row["torch_versions"].split("|"))
    others: list[Sequence[str]] = [
        (f"{base}.*", "", "", kind, "torch 2.13 native_functions.yaml")
        for base, kind in _without_kernel(facts).items()
    ]
    with open(facts / "aten_cpu_fallback_only.json", encoding="utf-8") as file:
        for name in json.load(file):
            # The list is of one release, so others are left out. torch 2.13 has a CPU
            # kernel for each of them, so the fallback can run.
            row_on_overload = (
                name[len("aten::") :],
                _COMPARED,
                _COMPARED,
                "fallback",
                "torch_npu 2.13 dispatcher",
            )
            others.append(row_on_overload)
    write_kernels(api_db, held, others)


def _without_kernel(facts: Path) -> dict[str, str]:
    """What upstream does for a base name that has no NPU kernel at some version."""
    kinds = {"composite_implicit": "composite", "composite_explicit": "composite", "backend": "fallback"}
    found: dict[str, str] = {}
    for table, column in (("docs_vs_kernel", "aten_base"), ("native_api_interp", "aten_base")):
        with open(facts / f"{table}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["kernel"] in kinds:
                    found[row[column]] = kinds[row["kernel"]]
    found.update(dict.fromkeys(_NO_CPU_KERNEL, "none"))
    return found
