"""The volumes and mounts of a pod: the driver of the NPUs instead of that of the GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from migrator.language import N_
from migrator.launch.k8s.changes import Draft, Path
from migrator.launch.k8s.cluster import Cluster, Mount, PlaceError, tables


def change_volumes(
    draft: Draft,
    here: Path,
    spec: Mapping[str, Any],
    containers: Sequence[tuple[tuple[Path, Mapping[str, Any]], int]],
    cluster: Cluster,
) -> None:
    """Change the volumes of the pod at ``here`` and the mounts of its containers, given with their NPUs."""
    volumes = _mappings(spec, "volumes", here)
    foreign = [
        number for number, one in enumerate(volumes) if re.match(tables()["gpu_paths"], _host_path(one))
    ]
    for number in foreign:
        said = N_("left out: the volume of the node's {volumes}")
        draft.note((*here, "volumes", number), said, volumes=_host_path(volumes[number]))
    gone = [volumes[number].get("name") for number in foreign]
    kept = [one for number, one in enumerate(volumes) if number not in foreign]
    needed: dict[str, Mount] = {}
    for (place, container), npus in containers:
        mounts = _mappings(container, "volumeMounts", place)
        removed = [number for number, one in enumerate(mounts) if one.get("name") in gone]
        staying = [one for one in mounts if one.get("name") not in gone]
        missing = [mount for mount in cluster.mounts if npus and not _covered(mount, staying)]
        names = [_volume(mount, kept, needed) for mount in missing]
        added = [{"name": name, "mountPath": mount.path} for name, mount in zip(names, missing)]
        if added:
            draft.remark(
                place, "added: the mounts {missing}", missing=", ".join(mount.path for mount in missing)
            )
        draft.items(place, container, "volumeMounts", removed, added)
    draft.items(
        here, spec, "volumes", foreign, [{"name": name, **mount.source()} for name, mount in needed.items()]
    )


def _volume(mount: Mount, volumes: Sequence[Mapping[str, Any]], needed: dict[str, Mount]) -> str:
    """The name of the volume to mount: one that is there, or a new one, which goes into ``needed``."""
    for one in volumes:
        if not mount.memory and _host_path(one).rstrip("/") == mount.path:
            return str(one.get("name"))
        if mount.memory and one.get("name") == mount.name and one.get("emptyDir") == {"medium": "Memory"}:
            return mount.name
    taken = [one.get("name") for one in volumes]
    name = mount.name
    while name in taken:
        name += "-npu"
    needed[name] = mount
    return name


def _covered(mount: Mount, mounts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether something is mounted there already, or above it."""
    paths = [str(one.get("mountPath", "")).rstrip("/") for one in mounts]
    return any(path and (mount.path == path or mount.path.startswith(path + "/")) for path in paths)


def _host_path(volume: Mapping[str, Any]) -> str:
    source = volume.get("hostPath")
    return str(source.get("path", "")) if isinstance(source, dict) else ""


def _mappings(holder: Mapping[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise PlaceError((*path, key), "{key} is not a list of mappings", key=key)
    return value
