"""Which dtypes an operator takes: CANN's errors where its documents are clear; with --strict all documents.

``api_db/by_hand/cann_dtypes.csv`` has what CANN's own calls check; a row holds for the operators without
regard to overloads. ``api_db/api_support.csv`` has what torch_npu's documents list for functions of torch.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator

from npumigrate_emulator import compute

_WORDS = {
    "bf16": "BFLOAT16",
    "fp16": "FLOAT16",
    "fp32": "FLOAT",
    "fp64": "DOUBLE",
    "uint8": "UINT8",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
}


def register(version: str) -> None:
    """Tell the kernels what to refuse, for a version of torch."""
    folder = os.environ["NPUMIGRATE_EMULATOR_API_DB"]
    if os.environ.get("NPUMIGRATE_EMULATOR_STRICT") == "1":
        for operator, words in _documented(folder, version):
            compute.list_dtypes(f"aten::{operator}", "", (), sorted(_WORDS[word] for word in words))
    for row in _rows(folder, "by_hand", "cann_dtypes.csv"):
        for operator in row["operators"].split():
            compute.list_dtypes(operator, row["call"], row["arguments"].split(), row["dtypes"].split())


def _rows(*path: str) -> Iterator[dict[str, str]]:
    with open(os.path.join(*path), encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _documented(folder: str, version: str) -> list[tuple[str, set[str]]]:
    """Return what the documents list for each operator; where they speak of single arguments, nothing."""
    found: dict[str, set[str]] = {}
    unclear = set()
    for row in _rows(folder, "api_support.csv"):
        if not row["aten"] or not _holds(row, version):
            continue
        words = row["dtypes"].split("+") if row["dtypes"] else []
        if row["status"] == "unsupported":
            found.setdefault(row["aten"], set())
        elif words and all(word in _WORDS for word in words):
            found.setdefault(row["aten"], set()).update(words)
        else:
            unclear.add(row["aten"])
    return [(name, words) for name, words in found.items() if name not in unclear]


def _holds(row: dict[str, str], version: str) -> bool:
    return _key(row["from"]) <= _key(version) and (not row["to"] or _key(version) <= _key(row["to"]))


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())
