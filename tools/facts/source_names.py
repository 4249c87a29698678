"""api_db/source_names.csv: CUDA names that were looked up in torch_npu's sources.

For releases without a wheel, and for names that a wheel's sources do not show
(set by the compiled part, or by the import of something else).
"""

from __future__ import annotations

import csv
from pathlib import Path

from tools.releases import writing


def derive(facts: Path, api_db: Path) -> None:
    """Write source_names.csv."""
    without_wheel = [row["torch"] for row in writing.records("versions", api_db) if not row["npu_wheel"]]
    lines: dict[str, list[str]] = {}
    with open(facts / "surface_2_13.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kinds = {"module": "module", "function": "function", "type": "class"}
            name = f"{row['cuda_module']}.{row['name']}"
            lines[name] = [name, kinds.get(row["cuda_type"], "value"), "no", ""]
    with open(facts / "cuda_to_npu.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["cuda_api"]
            line = lines.setdefault(name, [name, "", "no", ""])
            # "docs" alone is a document's word; the names were not found in the
            # sources (torch.npu.nvtx, torch.npu.comm), and no wheel has them.
            # "surface_guess" and "surface_class" saw something other than the name.
            # Private names were not looked for, so nothing follows from their absence.
            if "surface" in row["evidence"] or not name.rpartition(".")[2].startswith("_"):
                line[2] = "yes"
            if row["evidence"] in ("surface", "docs+surface", "docs+surface_class"):
                found_at = row["torch_versions"].split("|")
                line[3] = " ".join(version for version in without_wheel if version in found_at)
    writing.write_in(api_db, "source_names", lines.values())
