"""What a pod needs on a cluster with Ascend NPUs: the tables are in ``reports/launcher/k8s.yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from migrator.data_folders import reports_yaml
from migrator.language import N_, MessageError, _
from migrator.light import Frozen

DEFAULT_HARDWARE = "A2"
DEFAULT_PLATFORM = "mindcluster"


class ManifestError(MessageError):
    """Something that no manifest can be made of; the text names its place."""


class PlaceError(ManifestError):
    """The same, with the place below a document as a path."""

    def __init__(self, path: tuple[str | int, ...], text: str, /, **values: object) -> None:
        super().__init__(text, **values)
        self.path = path


class Mount(NamedTuple):
    """A folder or file of the node in a container; ``memory`` is a file system in memory instead."""

    name: str
    path: str
    memory: bool


class Cluster(Frozen):
    """The forms of one cluster software on one product line.

    ``resource`` is the name of an NPU, ``npus`` how many a pod can ask for.
    ``labels`` belong to the job and its pods, ``nodes`` choose the nodes.
    ``devices`` is the variable that takes the chosen NPUs from Volcano's annotation, or empty.
    """

    hardware: str
    about: str
    resource: str
    npus: tuple[int, ...]
    labels: Mapping[str, str]
    nodes: Mapping[str, str]
    mounts: tuple[Mount, ...]
    devices: str

    def count_problem(self, npus: int) -> str:
        """Why a pod cannot have that many NPUs, or nothing."""
        if npus in self.npus:
            return ""
        said = N_("a pod on {hardware} can have {str} NPUs, not {npus}")
        return _(said, hardware=self.hardware, str=", ".join(map(str, self.npus)), npus=npus)


def cluster(
    platform: str = "", hardware: str = "", accelerator_type: str = "", resource: str = ""
) -> Cluster:
    """The tables' entry; with another ``resource`` where the cluster calls an NPU so.

    Raises ManifestError where there is none, with those that there are.
    """
    platform, hardware = platform or DEFAULT_PLATFORM, hardware or DEFAULT_HARDWARE
    known = tables()["platforms"]
    if platform not in known:
        said = N_("--platform: choose from {known}, not {platform!r}")
        raise ManifestError(said, platform=platform, known=", ".join(known))
    entry = known[platform]
    if hardware not in entry["hw"]:
        said = N_("{hardware!r} is not a product line of {platform}: {entry}")
        raise ManifestError(said, hardware=hardware, platform=platform, entry=", ".join(entry["hw"]))
    types = tables()["accelerator_types"][hardware]
    if accelerator_type and accelerator_type not in types:
        said = N_("the accelerator type {accelerator_type!r} is not available on {hardware}: {types}")
        values = {"accelerator_type": accelerator_type, "hardware": hardware, "types": ", ".join(types)}
        raise ManifestError(said, **values)
    names = entry["hw"][hardware]
    nodes = {entry["node_label"]: names["node"]} if "node_label" in entry else {}
    if accelerator_type:
        nodes["accelerator-type"] = accelerator_type
    mounts = ((name, tables()["mounts"][name]) for name in entry["mounts"])
    return Cluster(
        hardware,
        entry["about"],
        resource or names["resource"],
        tuple(tables()["npus"][hardware]),
        {entry["label"]: names["label"]} if "label" in entry else {},
        nodes,
        tuple(Mount(name, one["path"], one.get("memory", False)) for name, one in mounts),
        "" if resource else entry.get("devices_from_annotation", ""),
    )


def is_gpu(resource: str) -> bool:
    """Whether a resource is a GPU, or a slice of one."""
    return resource in tables()["gpu_resources"] or is_slice(resource)


def is_slice(resource: str) -> bool:
    """Whether a resource is a part of a GPU."""
    return bool(re.match(tables()["gpu_slices"], resource))


def tables() -> dict[str, Any]:
    """The content of ``k8s.yaml``."""
    content: dict[str, Any] = reports_yaml("launcher/k8s.yaml")
    return content
