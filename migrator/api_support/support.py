"""How well an API works on an NPU: what the documents say, and what is registered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from migrator.api_support import tables
from migrator.api_support.versions import TorchVersion, known
from migrator.language import _
from migrator.light import NamedTuple


class Support(NamedTuple):
    """A row of api_support.csv: what the documents say of an API from one torch version to another.

    ``status`` is the documents' word: supported | partial | unsupported, or unknown where the versions around
    disagree. ``hardware``, ``dtypes`` and ``limits`` are words; docs/api_db.md explains them. ``aten`` is the
    operator behind the API, empty where it is no single one. Of one version, ``kernel`` is what torch_npu
    registers for that: kernel | composite (torch builds it from others) | none (runs on the CPU, or raises);
    and ``neighbour`` names the version or versions whose documents were used, empty where the version's own
    were.
    """

    api: str
    first: str
    last: str
    status: str
    hardware: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: tuple[str, ...]
    npu: str
    aten: str
    source: str
    kernel: str = ""
    neighbour: str = ""


class Kernel(NamedTuple):
    """A row of kernels.csv: what is registered for an operator from one torch version to another."""

    op: str
    first: str
    last: str
    kind: str
    source: str


@cache
def look_up(api: str, version: TorchVersion) -> Support | None:
    """What is known of an API, by its qualified name or an alias of it; None where nothing is."""
    found = _at(api, version)
    if found and not found.neighbour:
        return found
    alias = spelled(api)
    other = _at(alias, version) if alias else None
    # torch.nn.Parameter is in the old documents, torch.nn.parameter.Parameter in
    # the new: take the spelling that the version's own document uses.
    return other if other and (found is None or not other.neighbour) else found


def _at(api: str, version: TorchVersion) -> Support | None:
    found = tables.first_at(rows(api), version.tuple)
    if found and ("docs" in version.evidence or found.first == found.last == version.text):
        return found._replace(kernel=kernel(found.aten, version))
    if found:
        # One row around it; newer than every document, there is one side only.
        documented = [other for other in known() if "docs" in other.evidence]
        sides = [other.text for other in documented if other.tuple < version.tuple][-1:]
        sides += [other.text for other in documented if other.tuple > version.tuple][:1]
    else:
        older = [row for row in rows(api) if row.last and tables.as_tuple(row.last) < version.tuple]
        newer = [row for row in rows(api) if row.first and tables.as_tuple(row.first) > version.tuple]
        if not (older or newer):
            return None
        below, above = (older or newer)[-1 if older else 0], newer[0] if newer else older[-1]
        sides, status = [row.last for row in older[-1:]] + [row.first for row in newer[:1]], above.status
        if below.status != above.status:
            # Supported on one side and with limits on the other: assume the limits.
            status = "unknown" if "unsupported" in (below.status, above.status) else "partial"
        # The newer document is the more exact one, unless only the older has the limits.
        found = (below if status == below.status != above.status else above)._replace(status=status)
    return found._replace(kernel=kernel(found.aten, version), neighbour=_(" and ").join(sides))


def kernel(aten: str, version: TorchVersion) -> str:
    """What torch_npu registers for an aten operator's base name: kernel | composite | none, or ''.

    ``none`` is what ``registered`` calls fallback or none.
    """
    return registered(aten, version).replace("fallback", "none")


def registered(aten: str, version: TorchVersion) -> str:
    """What an NPU does with an aten operator, by its base name.

    kernel (torch_npu registers one), composite (torch builds it from others), fallback (it runs on the CPU),
    none (there is nothing to fall back to), or '' where that is not known.
    """
    otherwise, listed = "", _listed_for(version)
    for row in kernels(aten):
        if row.op.endswith(".*"):
            otherwise = row.kind
        elif tables.covers(row.first, row.last, listed):
            if row.kind == "kernel":
                return row.kind
            otherwise = otherwise or row.kind
    held = {} if otherwise else _natives(aten, version)
    return _of_native(held.get(aten) or next(iter(held.values())), version) if held else otherwise


def overload_registered(operator: str, version: TorchVersion) -> str:
    """As ``registered``, for one overload: ``add.Tensor``, or ``sum`` without a name."""
    base = operator.partition(".")[0]
    here = tables.at(kernels(base), _listed_for(version))
    for row in here:
        if row.op == operator:
            return row.kind
    held = _natives(base, version)
    if operator not in held:
        return registered(base, version)  # this version spells its overloads otherwise
    # A kernel for `inverse` serves where torch would come to `inverse.out` without it.
    with_kernel = {row.op for row in here if row.kind == "kernel"}
    if any(kind == operator and other in with_kernel for other, kind in held.items()):
        return "kernel"
    return _of_native(held[operator], version)


@cache
def _listed_for(version: TorchVersion) -> tuple[int, ...]:
    """The version whose operator lists hold: its own, or the next newer one that has some."""
    listed = (each for each in known() if each.tuple >= version.tuple and each.evidence != "interpolated")
    return next(listed, version).tuple


def _of_native(kind: str, version: TorchVersion) -> str:
    if kind in ("composite", "none"):
        return kind
    return "fallback" if kind == "cpu" else overload_registered(kind, version)


@cache
def _natives(base: str, version: TorchVersion) -> dict[str, str]:
    """The overloads of an operator at a version, and what torch has for each (native_functions.csv)."""
    lines = tables.starting("native_functions", f"{base},") + tables.starting("native_functions", f"{base}.")
    cells = (line.split(",") for line in lines)
    return {op: kind for op, first, last, kind in cells if tables.covers(first, last, version.tuple)}


def lacking(operators: Iterable[str], version: TorchVersion) -> dict[str, str]:
    """The operators without an NPU kernel at a version, with what the NPU does instead: fallback or none."""
    kinds = {operator: overload_registered(operator, version) for operator in operators}
    return {operator: kind for operator, kind in kinds.items() if kind in ("fallback", "none")}


@cache
def kernels(base: str) -> tuple[Kernel, ...]:
    """The rows on an operator and its overloads."""
    found = tables.starting("kernels", f"{base},") + tables.starting("kernels", f"{base}.")
    return tuple(Kernel(*line.split(",")) for line in found)


@cache
def rows(api: str) -> tuple[Support, ...]:
    """The rows on an API, oldest first; none where the documents list no such name."""
    return tuple(map(parsed, tables.starting("api_support", f"{api},")))


def parsed(line: str) -> Support:
    """A line of api_support.csv."""
    api, first, last, status, hardware, dtypes, limits, *rest = line.split(",")
    words = tuple(hardware.split()), tuple(dtypes.split()), tuple(limits.split())
    return Support(api, first, last, status, *words, *rest)


def spelled(name: str) -> str:
    """The name under which the documents list an API that goes by an alias, or ''."""
    parent, _, member = name.rpartition(".")
    # torch.nn.modules.module.Module.to: a member of a class that goes by an alias.
    for aliased, rest in ((name, ""), (parent, f".{member}")):
        for line in tables.starting("aliases", f"{aliased},"):
            return line.partition(",")[2] + rest
    return ""


def limit_words(limits: Iterable[str], but: tuple[str, ...] = ()) -> list[str]:
    """Coded limits in words (limits.csv), one for each code; those that say that there is none come last.

    Those that begin with one of ``but`` in English are left out.
    """
    parameters: dict[str, list[str]] = {}
    for limit in limits:
        code, colon, parameter = limit.partition(":")
        parameters.setdefault(code + colon, []).append(parameter)
    meanings = {code: rows[0][1] for code, rows in tables.grouped("limits").items()}
    words = [(meanings.get(code, code), ", ".join(names)) for code, names in parameters.items()]
    words.sort(key=lambda word: word[0].startswith("no limit"))
    return [_(text).replace("{}", names) for text, names in words if not text.startswith(but)]
