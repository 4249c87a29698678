"""How well an API works on an NPU: what the documents say, and what is registered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Optional

from migrator.api_support import tables
from migrator.api_support.versions import TorchVersion, known


@dataclass(frozen=True)
class Support:
    """An API at one torch version.

    ``status`` is the documents' word: supported | partial | unsupported, or
    unknown where the versions around disagree. ``kernel`` is what torch_npu
    registers: kernel | composite (torch builds it from others) | none (runs
    on the CPU, or raises), empty where the API is no single operator. ``hardware``,
    ``dtypes`` and ``limits`` are words; docs/api_db.md explains them.
    ``neighbour`` names the version or versions whose documents were used,
    empty where the version's own were.
    """

    api: str
    status: str
    hardware: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: tuple[str, ...]
    npu: str
    kernel: str
    source: str
    neighbour: str


class Row(NamedTuple):
    """A row of api_support.csv behind its name."""

    first: str
    last: str
    status: str
    hardware: str
    dtypes: str
    limits: str
    npu: str
    aten: str
    source: str


@cache
def look_up(api: str, version: TorchVersion) -> Optional[Support]:
    """What is known of an API, by its qualified name or an alias of it; None where nothing is."""
    found = _at(api, version)
    if found and not found.neighbour:
        return found
    alias = spelled(api)
    other = _at(alias, version) if alias else None
    # torch.nn.Parameter is in the old documents, torch.nn.parameter.Parameter in
    # the new: take the spelling that the version's own document uses.
    return other if other and (found is None or not other.neighbour) else found


@cache
def names() -> frozenset[str]:
    """Every API that the documents list at some version, and every alias of one."""
    return frozenset(
        line.partition(",")[0] for table in ("api_support", "aliases") for line in tables.lines(table)
    )


def _at(api: str, version: TorchVersion) -> Optional[Support]:
    known_rows = rows(api)
    if not known_rows:
        return None
    covering = next((row for row in known_rows if tables.covers(row.first, row.last, version.tuple)), None)
    if covering and ("docs" in version.evidence or covering.first == covering.last == version.text):
        return _support(api, covering, covering.status, version, "")
    below = covering or next(
        (row for row in reversed(known_rows) if row.last and _last(row) < version.tuple), None
    )
    above = covering or next((row for row in known_rows if row.first and _first(row) > version.tuple), None)
    if below and above:
        return _between(api, below, above, version)
    row = below or above
    assert row, "a row that neither covers a version nor lies on a side of it"
    return _support(api, row, row.status, version, row.last if below else row.first)


def _between(api: str, below: Row, above: Row, version: TorchVersion) -> Support:
    """What the documented versions on both sides say of one between them."""
    before = [other for other in known() if "docs" in other.evidence and other.tuple < version.tuple]
    after = [other for other in known() if "docs" in other.evidence and other.tuple > version.tuple]
    if below is above:
        # One row around it; newer than every document, there is one side only.
        sides = [other.text for other in (*before[-1:], *after[:1])]
    else:
        sides = [below.last, above.first]
    status = _agreed(below.status, above.status)
    # The newer document is the more exact one, unless only the older has the limits.
    row = below if status == below.status != above.status else above
    return _support(api, row, status, version, " and ".join(sides))


def _agreed(below: str, above: str) -> str:
    """The status between two others."""
    if below == above:
        return above
    # Supported on one side and with limits on the other: assume the limits.
    return "unknown" if "unsupported" in (below, above) else "partial"


def _support(api: str, row: Row, status: str, version: TorchVersion, neighbour: str) -> Support:
    return Support(
        api=api,
        status=status,
        hardware=tuple(row.hardware.split()),
        dtypes=tuple(row.dtypes.split()),
        limits=tuple(row.limits.split()),
        npu=row.npu,
        kernel=kernel(row.aten, version),
        source=row.source,
        neighbour=neighbour,
    )


def kernel(aten: str, version: TorchVersion) -> str:
    """What torch_npu registers for an aten operator's base name: kernel | composite | none, or ''.

    ``none`` is what ``registered`` calls fallback or none.
    """
    return registered(aten, version).replace("fallback", "none")


def registered(aten: str, version: TorchVersion) -> str:
    """What becomes of an aten operator's base name on an NPU.

    kernel (torch_npu registers one), composite (torch builds it from others),
    fallback (it runs on the CPU), none (there is nothing to fall back to), or
    '' where that is not known.
    """
    otherwise = ""
    for overload, first, last, kind in _kernels(aten):
        if overload == "*":
            otherwise = kind
        elif tables.covers(first, last, version.tuple):
            if kind == "kernel":
                return kind
            otherwise = otherwise or kind
    return otherwise


def composed(api: str, version: TorchVersion) -> Optional[str]:
    """What becomes of an API that is Python code, of which composed.csv names the operators.

    composite (all of them have kernels), python (it comes to none), or None where the
    table has it not, or one of the operators has no kernel.
    """
    line = next(iter(tables.starting("composed", f"{api},")), "")
    if not line:
        return None
    operators = line.split(",")[1].split()
    if all(kernel(operator, version) in ("kernel", "composite") for operator in operators):
        return "composite" if operators else "python"
    return None


def _first(row: Row) -> tuple[int, ...]:
    return tables.as_tuple(row.first)


def _last(row: Row) -> tuple[int, ...]:
    return tables.as_tuple(row.last)


def kernel_lines(base: str) -> list[str]:
    """The lines of kernels.csv on an operator and its overloads."""
    return tables.starting("kernels", f"{base},") + tables.starting("kernels", f"{base}.")


@cache
def _kernels(base: str) -> list[tuple[str, str, str, str]]:
    """Overload, from, to and kind of each of them."""
    found = []
    for line in kernel_lines(base):
        op, first, last, kind, _ = line.split(",")
        found.append((op.partition(".")[2], first, last, kind))
    return found


@cache
def rows(api: str) -> tuple[Row, ...]:
    """The rows on an API, oldest first; none where the documents list no such name."""
    return tuple(Row(*line.split(",")[1:]) for line in tables.starting("api_support", f"{api},"))


def spelled(name: str) -> str:
    """The name under which the documents list an API that goes by an alias, or ''."""
    parent, _, member = name.rpartition(".")
    # torch.nn.modules.module.Module.to: a member of a class that goes by an alias.
    return _aliased(name) or (_aliased(parent) and f"{_aliased(parent)}.{member}")


def _aliased(name: str) -> str:
    """The API that a name is another spelling of, or ''."""
    return next((line.partition(",")[2] for line in tables.starting("aliases", f"{name},")), "")
