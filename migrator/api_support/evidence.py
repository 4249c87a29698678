"""What is known of an API that no document lists: by its operators, by its source, or by what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Optional

from migrator.api_support import npu_names, support, tables
from migrator.api_support.torch_names import of_version
from migrator.api_support.verdict_type import Evidence
from migrator.api_support.versions import TorchVersion

_DEEPEST = 6  # names that stand for one another


@cache
def of_area(api: str) -> Optional[Evidence]:
    """What a person wrote of an API, or of the module that it lies in (by_hand/areas.csv)."""
    areas = tables.grouped("by_hand/areas")
    name, pattern = api, api
    while pattern not in areas and name:
        name = name.rpartition(".")[0]
        pattern = f"{name}.*"
    if pattern not in areas:
        pattern = next((each for each in areas if each.endswith("_*") and api.startswith(each[:-1])), "")
    if not pattern:
        return None
    return Evidence(areas[pattern][0][1], "area", True, note=areas[pattern][0][2])


@cache
def executed(api: str, version: TorchVersion) -> Optional[Evidence]:
    """What the operators of an API say that was run with torch's samples (composed.csv)."""
    line = next(iter(tables.starting("composed", f"{api},")), "")
    if not line:
        return None
    always, sometimes, backward = (tuple(cell.split()) for cell in line.split(",")[1:4])
    lacking = support.lacking(always, version)
    perhaps, back = (tuple(support.lacking(each, version)) for each in (sometimes, backward))
    return Evidence(_status(lacking), "executed", True, always, tuple(lacking), perhaps, back)


def _status(lacking: Mapping[str, str]) -> str:
    """The status of what comes to operators without a kernel, with what becomes of each: fallback or none."""
    return "unsupported" if "none" in lacking.values() else "fallback" if lacking else "supported"


@cache
def read(api: str, version: TorchVersion) -> Optional[Evidence]:
    """What the Python source of an API says (reached.csv), of the nearest version that was read."""
    rows = [line.split(",") for line in tables.starting("reached", f"{api},")]
    here = [row for row in rows if tables.covers(row[1], row[2], version.tuple)][:1]
    older = [row for row in rows if row[2] and tables.as_tuple(row[2]) < version.tuple][-1:]
    if not rows:
        return None
    how, always, sometimes = (here or older or rows)[0][3:]
    if how == "compiled":
        return Evidence("supported", "core", False)
    reached = always.split()
    operators = tuple(name for name in reached if "." not in name and ":" not in name)
    lacking = _without_kernel(operators, version)
    status, note = _status(lacking), ""
    for name in reached:
        stops = _stops(name, version)
        if stops:
            status, note = stops
            lacking = {name: "none"}
            break
    perhaps = _without_kernel([name for name in sometimes.split() if ":" not in name], version)
    return Evidence(status, "source", False, operators, tuple(lacking), tuple(perhaps), note=note)


def _without_kernel(operators: Iterable[str], version: TorchVersion) -> dict[str, str]:
    """The operators, by the names of the functions that call them, that come to one without a kernel."""
    found = {}
    for name in operators:
        traced = next(filter(None, (executed(f"{home}{name}", version) for home in _HOMES)), None)
        kind = support.registered(name, version)
        if kind == "composite" and traced is not None:
            kind = {"fallback": "fallback", "unsupported": "none"}.get(traced.status, kind)
        if kind in ("fallback", "none"):
            found[name] = kind
    return found


_HOMES = ("torch.", "torch.nn.functional.", "torch.Tensor.")


def _stops(name: str, version: TorchVersion) -> Optional[tuple[str, str]]:
    """Status and reason where a name in a source is of CUDA, or an operator of a library that NPUs lack."""
    if "::" in name:
        library = name.partition("::")[0]
        rows = tables.grouped("by_hand/areas").get(f"{library}::*")
        status, note = rows[0][1:3] if rows else ("supported", "")
        return (status, note.replace("{}", name)) if status != "supported" else None
    if "." not in name:
        return None
    form = npu_names.look_up(name, version)
    if form is None or form.npu or form.unchanged in ("works", "no_effect"):
        return None
    return "unsupported", f"it calls {name}, which has no NPU equivalent"


@cache
def compose(api: str, version: TorchVersion, depth: int = 0) -> Optional[Evidence]:
    """The strongest evidence on a name of torch, torchvision or torchaudio at a version; None without any."""
    found = of_area(api) or executed(api, version) or read(api, version)
    if found is not None or depth > _DEEPEST:
        return found
    names = of_version(version.text)
    other = names.stands_for(api)
    if other:
        return compose(other, version, depth + 1)
    kind = names.kind(api)
    if kind in ("value", "module"):
        return Evidence("supported", "value", False, note=kind)
    owner = api.rpartition(".")[0]
    # A member of a class of torch's compiled part, such as those of TorchScript.
    above = read(owner, version) if kind and owner else None
    if above is not None and above.kind == "core":
        return Evidence("supported", "core", False)
    return None
