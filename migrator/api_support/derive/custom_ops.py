"""api_db/custom_ops.csv: the APIs that only torch_npu has, and what they stand for."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.derive.operator_lists import Operators
from migrator.api_support.derive.wheel_names import read_versions

COLUMNS = ("api", "from", "to", "kind", "replaces", "replaces_source", "use_instead", "evidence")

# Operators of torch for quantized tensors that the facts took for torch_npu's own.
_NOT_OWN = ("torch_npu._empty_affine_quantized", "torch_npu.dequantize", "torch_npu.int_repr")

_Held = dict[str, set[str]]  # api -> versions
_Rest = dict[str, tuple[str, ...]]  # api -> the columns behind its range


def derive(facts: Path, api_db: Path) -> None:
    """Write custom_ops.csv.

    ``replaces_source`` tells a documented replacement (docs, docs-affinity)
    from one that only the names suggest (name). ``use_instead`` is what a
    deprecated API gave way to, `none` where nothing took its place.
    """
    held: _Held = {}
    rest: _Rest = {}
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
    _write(api_db, held, rest)


def set_release(api_db: Path, version: str, operators: Operators, own_names: frozenset[str]) -> None:
    """Make custom_ops.csv say what the torch_npu for a version has, and nothing else of it.

    versions.csv knows the version already. Operators that no release had come new into
    the table; Python names only by a person's hand.
    """
    order = [row["torch"] for row in read_versions(api_db)]
    held: _Held = {}
    rest: _Rest = {}
    for api, first, last, *columns in tables.rows("custom_ops", api_db):
        held.setdefault(api, set()).update(tables.inside(first, last, order))
        rest[api] = tuple(columns)
    ops = {"torch_npu." + op.partition(".")[0] for op in operators.custom}
    for api in ops - held.keys():
        held[api], rest[api] = set(), ("op", "", "", "", "yaml")
    for api in held:
        held[api].discard(version)
        if api in own_names or (api in ops and rest[api][0] == "op"):
            held[api].add(version)
    _write(api_db, held, rest)


def _write(api_db: Path, held: _Held, rest: _Rest) -> None:
    order = [row["torch"] for row in read_versions(api_db)]
    lines: list[Sequence[str]] = []
    for api, versions in held.items():
        folded = tables.ranges(dict.fromkeys(versions, ()), order)
        lines += [(api, first, last, *rest[api]) for first, last, _ in folded]
    tables.write(api_db / "custom_ops.csv", COLUMNS, lines)
