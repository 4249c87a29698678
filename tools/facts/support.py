"""api_db/api_support.csv: what the torch_npu documents say of every API."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from tools.releases import writing

# Marks of where a fact came from, not limits of the API.
_PROVENANCE = {"peer_only", "docs_untested", "src_conflict", "dup_conflict"}

Row = dict[str, str]


def derive(facts: Path, api_db: Path) -> None:
    """Write api_support.csv.

    Only stated facts get rows: for versions whose documents are silent the
    look-up takes the neighbours, and says so.
    """
    versions = {row["torch"]: row["evidence"] for row in writing.records("versions", api_db)}
    by_api: dict[str, dict[str, Row]] = {}
    with open(facts / "native_api.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # torch 1.5.0 had no torch_npu (it was a patched torch): no evidence for any known version.
            if row["torch_version"] in versions:
                by_api.setdefault(row["api"], {})[row["torch_version"]] = row
    aten = _aten_names(facts)
    kernels = _ops_at(facts, "1.8.1")
    own_names = _names_with_npu_form(api_db)
    lines: list[Sequence[str]] = []
    for api, rows in by_api.items():
        op = aten.get(api, "")
        values = {version: _value(row, op, op in kernels, api in own_names) for version, row in rows.items()}
        # A version without a full document (2.4.0 has excerpts for 21 APIs) counts only where
        # it has something to say, so that it does not break the others' ranges.
        order = [version for version, evidence in versions.items() if "docs" in evidence or version in values]
        for first, last, value in tables.ranges(values, order):
            inside = [version for version in order if tables.covers(first, last, tables.as_tuple(version))]
            lines.append((api, first, last, *value, _sources([rows[version] for version in inside])))
    assert not any("," in cell for line in lines for cell in line), "the look-up splits lines at commas"
    writing.write_in(api_db, "api_support", lines)


def _value(row: Row, aten: str, has_kernel: bool, has_own_npu_name: bool) -> tuple[str, ...]:
    codes = [code for code in row["note_code"].split("|") if code]
    marks = _PROVENANCE.intersection(codes)
    status = row["status"]
    if "src_conflict" in marks and has_kernel:
        # The Chinese and the English document of 1.8.1 disagree: what the release
        # registers decides. Without a kernel the English one stands, which is the
        # more detailed; `src_conflict` stays in the limits for the reader.
        status = "supported"
    # dup_conflict: the document lists the API twice, once with limits. The facts
    # keep the limited entry, which is the careful one.
    # docs_untested: the document of 2.1 leaves the API blank and another published
    # list fills it in. The mark stays among the limits: it is weaker evidence.
    kept = [code for code in dict.fromkeys(codes) if code not in ("peer_only", "dup_conflict", "npu_name")]
    # npu_names.csv is the one place that says what a torch.cuda name becomes.
    npu_name = "" if has_own_npu_name else _attribute_form(row["npu_name"])
    return (
        status,
        row["hw"].replace("|", " "),
        _dtypes(row["dtypes"]),
        " ".join(kept),
        npu_name,
        aten,
    )


def _dtypes(text: str) -> str:
    # fp32,fp16;other:bool -> fp32+fp16 other:bool, so that a cell holds no comma.
    return text.replace(",", "+").replace(";", " ")


def _attribute_form(name: str) -> str:
    return re.sub(r"^torch_npu\.npu\.", "torch.npu.", name)


def _sources(rows: list[Row]) -> str:
    editions = dict.fromkeys(_edition(row["source"]) for row in rows)
    return "documents " + " ".join(sorted(editions))


def _edition(source: str) -> str:
    """26.0, 26.1 and master are editions over several torch versions; before them there is one a version."""
    if source == "peer-json":
        return "(published list)"
    if source.startswith("web"):
        return "(excerpt)"
    found = re.search(r"@(?:v3\.0\.0-pytorch|v2\.7\.1-|v)?(\w+(?:\.\d+)?)", source)
    return found.group(1) if found else source


def _aten_names(facts: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    for table in ("docs_vs_kernel", "native_api_interp"):
        with open(facts / f"{table}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["aten_base"]:
                    names[row["api"]] = row["aten_base"]
    return names


def _ops_at(facts: Path, version: str) -> set[str]:
    with open(facts / "npu_kernels.csv", encoding="utf-8", newline="") as file:
        return {row["base"] for row in csv.DictReader(file) if version in row["torch_versions"].split("|")}


def _names_with_npu_form(api_db: Path) -> set[str]:
    return {row[0] for row in tables.rows("npu_names", api_db)}
