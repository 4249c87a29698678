"""What torch itself has for each operator (api_db/native_functions.csv), from the list in its wheel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.releases.archive import Archive, WheelError
from migrator.api_support.releases.operator_lists import operator_name, parsed

Natives = dict[
    str, str
]  # an operator with its overload -> composite, cpu, none, or the one that it is made from

# torch's own list, as torchgen has it; wheels before torch 1.12 have none.
_LIST = "torchgen/packaged/ATen/native/native_functions.yaml"
_COMPOSITE = frozenset(
    "CompositeImplicitAutograd CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional".split()
)


def read_natives(archive: Archive) -> Natives:
    """What each operator is without a kernel of torch_npu; empty for a wheel that has no list.

    ``composite``: torch builds it from other operators. ``cpu``: it has a kernel for dense tensors on
    the CPU, and
    for devices that register one. ``none``: for neither. Else the operator (``mul.out``) whose kernel
    it uses.
    """
    if _LIST not in archive.entries:
        return {}
    entries = parsed(archive, _LIST)
    if not isinstance(entries, list):
        raise WheelError(f"{archive.path.name} is damaged: {_LIST} is no operator list")
    found: Natives = {}
    for entry in entries:
        name = operator_name(archive, _LIST, entry)
        keys = {key.strip() for keys in entry.get("dispatch") or {} for key in keys.split(",")}
        made_from = entry.get("structured_delegate", "")
        if keys & _COMPOSITE or not (keys or made_from):
            found[name] = "composite"
        else:
            found[name] = made_from or ("cpu" if "CPU" in keys else "none")
        # Variants that torchgen writes call the operator itself.
        for variant in str(entry.get("autogen") or "").split(","):
            if variant.strip():
                found[variant.strip()] = "composite"
    return found


def set_natives(api_db: Path, read: Mapping[str, Natives]) -> None:
    """Put the lists of some torch versions into the table, in place of what it has of them."""
    order = [row[0] for row in tables.rows("torch_wheels", api_db)]
    held: dict[tuple[str, str], set[str]] = {}
    for operator, first, last, kind in tables.rows("native_functions", api_db):
        inside = set(tables.inside(first, last, order))
        held[operator, kind] = held.get((operator, kind), set()) | (inside - read.keys())
    for version, natives in read.items():
        for key in natives.items():
            held.setdefault(key, set()).add(version)
    rows: list[Sequence[str]] = [
        (operator, first, last, kind) for (operator, kind), first, last in tables.spans(held, order)
    ]
    tables.write_in(api_db, "native_functions", rows)
