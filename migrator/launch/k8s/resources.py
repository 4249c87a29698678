"""A container's resources: NPUs instead of GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from migrator.language import _
from migrator.launch.k8s.changes import Delete, Draft, Path, Rename, Set, mapping
from migrator.launch.k8s.cluster import Cluster, PlaceError, tables

_NPU = re.compile(r"huawei\.com/(?:Ascend|ascend-|npu\Z)")
_NETWORK = re.compile(r"\Ardma/|mellanox|infiniband|amazonaws\.com/efa", re.IGNORECASE)
_SECTIONS = ("limits", "requests")


def is_gpu(resource: str) -> bool:
    """Whether a resource is a GPU, or a slice of one."""
    return resource in tables()["gpu_resources"] or is_slice(resource)


def is_slice(resource: str) -> bool:
    """Whether a resource is a part of a GPU."""
    return bool(re.match(tables()["gpu_slices"], resource))


def change_resources(draft: Draft, place: Path, container: Mapping[str, Any], cluster: Cluster) -> int:
    """Let a container ask for as many NPUs as it asked for GPUs; gives their number.

    What it asks for and its limit are the same, as Kubernetes wants it of
    devices. Raises PlaceError for a number that is none.
    """
    resources = container.get("resources")
    path: Path = (*place, "resources")
    if resources is None:
        return 0
    mapping(resources, path)
    counts: dict[str, int] = {}
    for section in _SECTIONS:
        held = resources.get(section)
        here = (*path, section)
        found = _section(draft, here, {} if held is None else mapping(held, here), cluster)
        if found is not None:
            counts[section] = found
    if not counts:
        return 0
    if len(set(counts.values())) > 1:
        numbers = " and ".join(f"{section} {count}" for section, count in counts.items())
        raise PlaceError(
            path, "devices cannot have different limits and requests: {numbers}", numbers=numbers
        )
    npus = next(iter(counts.values()))
    names = (str(name) for section in _SECTIONS for name in resources.get(section) or {})
    name = next(filter(_NPU.match, names), cluster.resource)
    for section in _SECTIONS:
        if section not in counts and npus:
            draft.entries(path, resources, section, {name: npus})
    problem = cluster.count_problem(npus) if npus else ""
    if problem:
        draft.remark(path, "left unchanged: {problem}", problem=problem)
    return npus


def _section(draft: Draft, path: Path, held: Mapping[str, Any], cluster: Cluster) -> int | None:
    """Change one of the two lists of resources; gives the number of NPUs, None where it names no device."""
    gpus = [name for name in held if is_gpu(str(name))]
    npus = [name for name in held if name == cluster.resource or _NPU.match(str(name))]
    for name in held:
        if _NETWORK.search(str(name)):
            draft.note(
                (*path, name), "left unchanged: {name} (HCCL uses the NPU's own network ports)", name=name
            )
    if gpus and npus:
        raise PlaceError((*path, gpus[0]), "{gpus} and {npus} in one container", gpus=gpus[0], npus=npus[0])
    if not gpus and not npus:
        return None
    numbers = [_number(held[name], (*path, name)) for name in gpus or npus]
    if gpus:
        first, *others = gpus
        draft.changes.append(Rename((*path, first), cluster.resource))
        if others:
            total: int | str = str(sum(numbers)) if isinstance(held[first], str) else sum(numbers)
            draft.changes.append(Set((*path, first), total))
            draft.changes += [Delete((*path, name)) for name in others]
        for name in gpus:
            whole = _(" (a whole NPU for each slice)") if is_slice(name) else ""
            became = {"name": name, "resource": cluster.resource, "whole": whole}
            draft.note((*path, name), "{name} became {resource}{whole}", **became)
    return sum(numbers)


def _number(value: Any, path: Path) -> int:
    text = str(value)
    if "$" in text:
        raise PlaceError(path, "{path}: {text} must be filled in first (envsubst)", path=path[-1], text=text)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise PlaceError(path, "{path}: {value!r} is not a number of devices", path=path[-1], value=value)
    return int(text)
