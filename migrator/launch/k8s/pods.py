"""What changes in a pod's template so that its containers get NPUs: all but the words of their commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from migrator.api_support import env_vars
from migrator.language import N_, _
from migrator.launch.k8s import commands
from migrator.launch.k8s.cluster import Cluster, Mount, PlaceError, is_gpu, is_slice, tables
from migrator.launch.k8s.yaml_text import Draft, Path
from migrator.launch.target import variables

_FOREIGN = re.compile(r"nvidia|cuda|gpu", re.IGNORECASE)
_CUDA_SIDE = re.compile(r"(?:TORCH_)?NCCL_|CUDA_|CUDNN_|NVIDIA_|NVSHMEM_")
_NPU_IMAGE = re.compile(r"ascend|cann|(?<![a-z])npu", re.IGNORECASE)
_NPU = re.compile(r"huawei\.com/(?:Ascend|ascend-|npu\Z)")
_NETWORK = re.compile(r"\Ardma/|mellanox|infiniband|amazonaws\.com/efa", re.IGNORECASE)
_SECTIONS = ("limits", "requests")


@dataclass(frozen=True)
class Pod:
    """How many NPUs a pod has, and whether torchrun asks the operator for the number of its ranks."""

    npus: int
    asks: bool


def change_pod(draft: Draft, path: Path, cluster: Cluster, image: str, by_volcano: bool) -> Pod:
    """Add the changes of the pod's template at ``path``.

    ``image`` replaces those of the containers with NPUs, where it is given.
    ``by_volcano``: Volcano chooses the nodes. Raises PlaceError where a part has the wrong form.
    """
    draft.mapping(path)
    here: Path = (*path, "spec")
    scheduler = draft.mapping(here).get("schedulerName", "volcano" if by_volcano else "")
    own = [(*here, "containers", number) for number, _each in enumerate(draft.listed((*here, "containers")))]
    initial = (*here, "initContainers")
    containers: list[Path] = [
        *own,
        *((*initial, number) for number, _each in enumerate(draft.listed(initial))),
    ]
    counts = {place: _resources(draft, place, cluster) for place in containers}
    asks = False
    for place, npus in counts.items():
        _environment(draft, place, _additions(cluster, scheduler == "volcano") if npus else {})
        asks |= _command(draft, place, npus)
        if npus:
            _image(draft, (*place, "image"), image)
    _volumes(draft, here, counts, cluster)
    _scheduling(draft, here, cluster.nodes if any(counts.values()) else {})
    if any(counts.values()):
        change_labels(draft, path, cluster)
    return Pod(sum(counts[place] for place in own), asks)


def change_labels(draft: Draft, path: Path, cluster: Cluster) -> None:
    """Add the labels of the cluster software to a job or a pod's template."""
    holder = draft.mapping(path) if path else draft.data
    if isinstance(holder.get("metadata"), dict):
        draft.entries((*path, "metadata", "labels"), dict(cluster.labels))
    elif cluster.labels and "metadata" not in holder:
        draft.put(path, "metadata", {"labels": dict(cluster.labels)}, first=True)


def _resources(draft: Draft, place: Path, cluster: Cluster) -> int:
    """Let a container ask for as many NPUs as it asked for GPUs; gives their number.

    What it asks for and its limit are the same, as Kubernetes wants it of
    devices. Raises PlaceError for a number that is none.
    """
    path: Path = (*place, "resources")
    if draft.mapping(place).get("resources") is None:
        return 0
    resources = draft.mapping(path)
    held = {each: draft.mapping((*path, each)) for each in _SECTIONS if resources.get(each) is not None}
    found = {section: _section(draft, (*path, section), held[section], cluster) for section in held}
    counts = {section: count for section, count in found.items() if count is not None}
    if len(set(counts.values())) > 1:
        said = N_("devices cannot have different limits and requests: {numbers}")
        numbers = " and ".join(f"{section} {count}" for section, count in counts.items())
        raise PlaceError(path, said, numbers=numbers)
    npus = next(iter(counts.values()), 0)
    names = (str(name) for names in held.values() for name in names)
    name = next(filter(_NPU.match, names), cluster.resource)
    for section in _SECTIONS:
        if section not in counts and npus:
            draft.entries((*path, section), {name: npus})
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
            said = N_("left unchanged: {name} (HCCL uses the NPU's own network ports)")
            draft.note((*path, name), said, name=name)
    if gpus and npus:
        raise PlaceError((*path, gpus[0]), "{gpus} and {npus} in one container", gpus=gpus[0], npus=npus[0])
    if not gpus and not npus:
        return None
    numbers = [_number(held[name], (*path, name)) for name in gpus or npus]
    if gpus:
        draft.rename((*path, gpus[0]), cluster.resource)
    if len(gpus) > 1:
        total = sum(numbers)
        draft.set((*path, gpus[0]), str(total) if isinstance(held[gpus[0]], str) else total)
    for number, name in enumerate(gpus):
        if number:
            draft.delete((*path, name))
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


def _additions(cluster: Cluster, by_volcano: bool) -> dict[str, dict[str, Any]]:
    """The variables that a container with NPUs gets, unless it has them."""
    result: dict[str, dict[str, Any]] = {
        one["name"]: {"name": one["name"], "value": one["value"]} for one in variables()
    }
    if cluster.devices and by_volcano:
        place = {"fieldRef": {"fieldPath": f"metadata.annotations['{cluster.resource}']"}}
        result[cluster.devices] = {"name": cluster.devices, "valueFrom": place}
    return result


def _environment(draft: Draft, place: Path, additions: Mapping[str, Any]) -> None:
    path: Path = (*place, "env")
    entries = [draft.mapping((*path, number)) for number, _each in enumerate(draft.listed(path))]
    names = [str(entry.get("name", "")) for entry in entries]
    removed = []
    for number, (name, entry) in enumerate(zip(names, entries)):
        here, known = (*path, number), env_vars.look_up(name)
        advice = known.advice.rstrip(".") if known else ""
        reason = tables()["variables_left_out"].get(name, "")
        if reason or (known and not known.npu) or (known and known.npu != name and known.npu in names):
            removed.append(number)
            there = _("{npu} is set as well", npu=known.npu) if known and known.npu else ""
            draft.note(here, "left out: {name} ({reason})", name=name, reason=reason or there or advice)
        elif known and known.npu != name:
            if env_vars.carries_over(known, str(entry.get("value", ""))):
                draft.set((*here, "name"), known.npu)
                draft.note(here, "{name} became {npu}", name=name, npu=known.npu)
                names[number] = known.npu
            else:
                said = N_("left unchanged: {name}, which is {npu} ({known})")
                draft.note(here, said, name=name, npu=known.npu, known=advice)
        elif known is None and _CUDA_SIDE.match(name):
            draft.note(here, "left unchanged: {name}, which is not known", name=name)
    added = [value for name, value in additions.items() if name not in names]
    if added:
        draft.remark(place, f"added: {', '.join(one['name'] for one in added)}")
    draft.entries(path, added, removed)


def _command(draft: Draft, place: Path, npus: int) -> bool:
    """Change ``command`` and ``args``; gives whether torchrun gets no number of ranks."""
    words = [
        ((*place, key, number), word)
        for key in ("command", "args")
        for number, word in enumerate(draft.listed((*place, key)))
        if isinstance(word, str)
    ]
    old = [word for _path, word in words]
    whole = commands.launched(old)
    # bash -c "mpirun …", or the words of the line themselves
    launched = whole or (commands.launched(old[-1:]) if old[:1] and old[0].endswith("sh") else None)
    if launched:
        command, notes = launched
        new = ["bash", "-c", command] if whole else [*old[:-1], command]
        for note in (_("the command became {command}", command=command), *notes):
            draft.note(words[0][0], note)
    else:
        new = commands.words_for_npus(old, npus)
    for (path, word), other in zip(words, new):
        if other != word:
            draft.set(path, other)
            if not launched:
                draft.rewrite[word, other] = lambda text: commands.for_npus(text, npus)
                draft.note(path, _difference(word, other))
    for key in ("command", "args"):
        rest = [int(path[-1]) for path, _word in words[len(new) :] if path[-2] == key]
        draft.entries((*place, key), [], rest)
    for (path, _old), word in zip(words, new):
        left = commands.about_gpus([word])
        if left:
            draft.note(path, "left unchanged: {left}", left=", ".join(left))
        if commands.is_launcher(word):
            draft.note(path, "left unchanged: an MPI line with hosts (see npumigrate launch mpi)")
    for count in commands.process_counts(new) if npus else ():
        if count != npus:
            said = N_("left unchanged: {count} ranks are started in a pod with {npus} NPUs")
            draft.remark(place, said, count=count, npus=npus)
    return bool(npus) and commands.starts_ranks(new)


def _difference(old: str, new: str) -> str:
    """What became of the words of a command."""
    before, after = old.split(), new.split()
    changes = [
        f"{' '.join(before[a:b])} became {' '.join(after[c:d])}"
        for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    return ", ".join(dict.fromkeys(changes))


def _image(draft: Draft, path: Path, image: str) -> None:
    present = draft.mapping(path[:-1]).get("image")
    if image and isinstance(present, str) and present != image:
        draft.set(path, image)
        draft.note(path, "the image {present} became {image}", present=present, image=image)
    elif image and present is None:
        draft.put(path[:-1], "image", image)
    elif not image and not _NPU_IMAGE.search(str(present)):
        said = N_("left unchanged: the image {present}. It has to hold CANN and torch_npu (--image sets one)")
        draft.note(path, said, present=present)


def _volumes(draft: Draft, here: Path, counts: Mapping[Path, int], cluster: Cluster) -> None:
    """Mount the driver of the NPUs instead of that of the GPUs; ``counts`` has the NPUs of each container."""
    volumes = _mappings(draft, (*here, "volumes"))
    foreign = [
        number for number, one in enumerate(volumes) if re.match(tables()["gpu_paths"], _host_path(one))
    ]
    for number in foreign:
        said = N_("left out: the volume of the node's {volumes}")
        draft.note((*here, "volumes", number), said, volumes=_host_path(volumes[number]))
    gone = [volumes[number].get("name") for number in foreign]
    kept = [one for number, one in enumerate(volumes) if number not in foreign]
    needed: dict[str, dict[str, Any]] = {}
    for place, npus in counts.items():
        mounts = _mappings(draft, (*place, "volumeMounts"))
        removed = [number for number, one in enumerate(mounts) if one.get("name") in gone]
        paths = [str(one.get("mountPath", "")).rstrip("/") for one in mounts if one.get("name") not in gone]
        missing = [mount for mount in cluster.mounts if npus and not _covered(mount.path, paths)]
        added = [{"name": _volume(mount, kept, needed), "mountPath": mount.path} for mount in missing]
        if added:
            said = N_("added: the mounts {missing}")
            draft.remark(place, said, missing=", ".join(mount.path for mount in missing))
        draft.entries((*place, "volumeMounts"), added, removed)
    draft.entries((*here, "volumes"), [{"name": name, **source} for name, source in needed.items()], foreign)


def _volume(mount: Mount, volumes: Sequence[Mapping[str, Any]], needed: dict[str, dict[str, Any]]) -> str:
    """The name of the volume to mount: one that is there, or a new one, which goes into ``needed``."""
    memory = {"emptyDir": {"medium": "Memory"}}
    for one in volumes:
        if not mount.memory and _host_path(one).rstrip("/") == mount.path:
            return str(one.get("name"))
        if mount.memory and one.get("name") == mount.name and one.get("emptyDir") == memory["emptyDir"]:
            return mount.name
    taken = [one.get("name") for one in volumes]
    name = mount.name
    while name in taken:
        name += "-npu"
    needed[name] = memory if mount.memory else {"hostPath": {"path": mount.path}}
    return name


def _covered(wanted: str, paths: Sequence[str]) -> bool:
    """Whether something is mounted there already, or above it."""
    return any(path and (wanted == path or wanted.startswith(path + "/")) for path in paths)


def _host_path(volume: Mapping[str, Any]) -> str:
    source = volume.get("hostPath")
    return str(source.get("path", "")) if isinstance(source, dict) else ""


def _mappings(draft: Draft, path: Path) -> list[dict[str, Any]]:
    value = draft.mapping(path[:-1]).get(str(path[-1]))
    if value is not None and not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        raise PlaceError(path, "{key} is not a list of mappings", key=path[-1])
    return value or []


def _scheduling(draft: Draft, here: Path, nodes: Mapping[str, str]) -> None:
    """Choose nodes with NPUs instead of nodes with GPUs."""
    spec = draft.mapping(here)
    path: Path = (*here, "nodeSelector")
    selector = spec.get("nodeSelector")
    removed = []
    for key, value in selector.items() if isinstance(selector, dict) else ():
        if not _FOREIGN.search(f"{key} {value}"):
            continue
        if key in nodes:
            draft.set((*path, key), nodes[key])
            said = N_("{key}: {selector} became {key}: {nodes}")
            draft.note((*path, key), said, key=key, selector=value, nodes=nodes[key])
        else:
            said = N_("left out: the node selector {key}: {selector}")
            draft.note((*path, key), said, key=key, selector=value)
            removed.append(key)
    draft.entries(path, dict(nodes), removed)
    path = (*here, "tolerations")
    tolerations = [one if isinstance(one, dict) else {} for one in draft.listed(path)]
    gone = [number for number, one in enumerate(tolerations) if _FOREIGN.search(str(one.get("key", "")))]
    for number in gone:
        said = N_("left out: the toleration of {tolerations}")
        draft.note((*path, number), said, tolerations=tolerations[number]["key"])
    draft.entries(path, [], gone)
    runtime = spec.get("runtimeClassName")
    if runtime and _FOREIGN.search(str(runtime)):
        draft.delete((*here, "runtimeClassName"))
        draft.note((*here, "runtimeClassName"), "left out: the runtime class {runtime}", runtime=runtime)
