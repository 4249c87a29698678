"""api_db/custom_ops.csv: the APIs that only torch_npu has, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.operator_lists import Operators
from migrator.api_support.releases.wheel_names import read_versions

COLUMNS = ("api", "from", "to", "kind", "replaces", "replaces_source", "use_instead", "evidence")

Held = dict[str, set[str]]  # api -> versions
Rest = dict[str, tuple[str, ...]]  # api -> the columns behind its range


def set_release(api_db: Path, version: str, operators: Operators, own_names: frozenset[str]) -> None:
    """Make custom_ops.csv say what the torch_npu for a version has, and nothing else of it.

    versions.csv knows the version already. Operators that no release had come new into
    the table; Python names only by a person's hand.
    """
    order = [row["torch"] for row in read_versions(api_db)]
    held: Held = {}
    rest: Rest = {}
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
    write(api_db, held, rest)


def write(api_db: Path, held: Held, rest: Rest) -> None:
    """Write custom_ops.csv: the versions that have each API, and its other columns."""
    order = [row["torch"] for row in read_versions(api_db)]
    lines: list[Sequence[str]] = []
    for api, versions in held.items():
        folded = tables.ranges(dict.fromkeys(versions, ()), order)
        lines += [(api, first, last, *rest[api]) for first, last, _ in folded]
    tables.write(api_db / "custom_ops.csv", COLUMNS, lines)
