"""What changes in a pod's template so that its containers get NPUs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from migrator.api_support import env_vars
from migrator.language import N_, _
from migrator.launch.k8s import commands
from migrator.launch.k8s.changes import Delete, Draft, Path, Put, Set, listed, mapping
from migrator.launch.k8s.cluster import Cluster, tables
from migrator.launch.k8s.resources import change_resources
from migrator.launch.k8s.volumes import change_volumes
from migrator.launch.target import variables

_FOREIGN = re.compile(r"nvidia|cuda|gpu", re.IGNORECASE)
_CUDA_SIDE = re.compile(r"(?:TORCH_)?NCCL_|CUDA_|CUDNN_|NVIDIA_|NVSHMEM_")
_NPU_IMAGE = re.compile(r"ascend|cann|(?<![a-z])npu", re.IGNORECASE)


@dataclass(frozen=True)
class Pod:
    """How many NPUs a pod has, and whether torchrun asks the operator for the number of its ranks."""

    npus: int
    asks: bool


def change_pod(
    draft: Draft, path: Path, template: Any, cluster: Cluster, image: str, by_volcano: bool
) -> Pod:
    """Add the changes of the pod's template at ``path``.

    ``image`` replaces those of the containers with NPUs, where it is given.
    ``by_volcano``: Volcano chooses the nodes. Raises PlaceError where a part has the wrong form.
    """
    template = mapping(template, path)
    here: Path = (*path, "spec")
    spec = mapping(template.get("spec"), here)
    by_volcano = spec.get("schedulerName", "volcano" if by_volcano else "") == "volcano"
    containers = [
        ((*here, kind, number), mapping(container, (*here, kind, number)))
        for kind in ("containers", "initContainers")
        for number, container in enumerate(listed(spec.get(kind), (*here, kind)))
    ]
    counts = [change_resources(draft, place, container, cluster) for place, container in containers]
    asks = False
    for (place, container), npus in zip(containers, counts):
        _environment(draft, place, container, _additions(cluster, by_volcano) if npus else {})
        asks |= _command(draft, place, container, npus)
        if npus:
            _image(draft, place, container, image)
    change_volumes(draft, here, spec, list(zip(containers, counts)), cluster)
    _scheduling(draft, here, spec, cluster.nodes if any(counts) else {})
    if any(counts):
        change_labels(draft, path, template, cluster)
    own = len(listed(spec.get("containers"), (*here, "containers")))
    return Pod(sum(counts[:own]), asks)


def change_labels(draft: Draft, path: Path, holder: Mapping[str, Any], cluster: Cluster) -> None:
    """Add the labels of the cluster software to a job or a pod's template."""
    metadata = holder.get("metadata")
    if isinstance(metadata, dict):
        draft.entries((*path, "metadata"), metadata, "labels", cluster.labels)
    elif cluster.labels and "metadata" not in holder:
        draft.changes.append(Put(path, "metadata", {"labels": dict(cluster.labels)}, first=True))


def _additions(cluster: Cluster, by_volcano: bool) -> dict[str, dict[str, Any]]:
    """The variables that a container with NPUs gets, unless it has them."""
    result: dict[str, dict[str, Any]] = {
        one["name"]: {"name": one["name"], "value": one["value"]} for one in variables()
    }
    if cluster.devices and by_volcano:
        place = {"fieldRef": {"fieldPath": f"metadata.annotations['{cluster.resource}']"}}
        result[cluster.devices] = {"name": cluster.devices, "valueFrom": place}
    return result


def _environment(
    draft: Draft, place: Path, container: Mapping[str, Any], additions: Mapping[str, Any]
) -> None:
    path: Path = (*place, "env")
    entries = [mapping(entry, (*path, n)) for n, entry in enumerate(listed(container.get("env"), path))]
    names = [str(entry.get("name", "")) for entry in entries]
    removed = []
    for number, (name, entry) in enumerate(zip(names, entries)):
        known = env_vars.look_up(name)
        reason = tables()["variables_left_out"].get(name, "")
        if reason or (known and not known.npu) or (known and known.npu != name and known.npu in names):
            removed.append(number)
            there = _("{npu} is set as well", npu=known.npu) if known and known.npu else ""
            said = N_("left out: {name} ({reason})")
            draft.note((*path, number), said, name=name, reason=reason or there or _advice(known))
        elif known and known.npu != name:
            if env_vars.carries_over(known, str(entry.get("value", ""))):
                draft.changes.append(Set((*path, number, "name"), known.npu))
                draft.note((*path, number), "{name} became {npu}", name=name, npu=known.npu)
                names[number] = known.npu
            else:
                said = N_("left unchanged: {name}, which is {npu} ({known})")
                draft.note((*path, number), said, name=name, npu=known.npu, known=_advice(known))
        elif known is None and _CUDA_SIDE.match(name):
            draft.note((*path, number), "left unchanged: {name}, which is not known", name=name)
    added = [value for name, value in additions.items() if name not in names]
    if added:
        draft.remark(place, f"added: {', '.join(one['name'] for one in added)}")
    draft.items(place, container, "env", removed, added)


def _advice(known: env_vars.EnvVar | None) -> str:
    return known.advice.rstrip(".") if known else ""


def _command(draft: Draft, place: Path, container: Mapping[str, Any], npus: int) -> bool:
    """Change ``command`` and ``args``; gives whether torchrun is not told the number of ranks."""
    words = [
        ((*place, key, number), word)
        for key in ("command", "args")
        for number, word in enumerate(listed(container.get(key), (*place, key)))
        if isinstance(word, str)
    ]
    old = [word for _path, word in words]
    whole = commands.launched(old)
    # bash -c "mpirun …", or the words of the line themselves
    alone = commands.launched(old[-1:]) if old[:1] and old[0].endswith("sh") else None
    if whole or alone:
        command, notes = whole or alone or ("", ())
        new = ["bash", "-c", command] if whole else [*old[:-1], command]
        for note in (_("the command became {command}", command=command), *notes):
            draft.note(words[0][0], note)
    else:
        new = commands.words_for_npus(old, npus)
    for (path, word), other in zip(words, new):
        if other != word:
            if whole or alone:
                draft.changes.append(Set(path, other))
            else:
                draft.changes.append(Set(path, other, lambda text: commands.for_npus(text, npus)))
                draft.note(path, _difference(word, other))
    for key in ("command", "args"):
        rest = [int(path[-1]) for path, _word in words[len(new) :] if path[-2] == key]
        draft.items(place, container, key, rest, [])
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


def _image(draft: Draft, place: Path, container: Mapping[str, Any], image: str) -> None:
    path: Path = (*place, "image")
    present = container.get("image")
    if image and isinstance(present, str) and present != image:
        draft.changes.append(Set(path, image))
        draft.note(path, "the image {present} became {image}", present=present, image=image)
    elif image and present is None:
        draft.changes.append(Put(place, "image", image))
    elif not image and not _NPU_IMAGE.search(str(present)):
        said = N_("left unchanged: the image {present}. It has to hold CANN and torch_npu (--image sets one)")
        draft.note(path, said, present=present)


def _scheduling(draft: Draft, here: Path, spec: Mapping[str, Any], nodes: Mapping[str, str]) -> None:
    """Choose nodes with NPUs instead of nodes with GPUs."""
    selector = spec.get("nodeSelector")
    removed: Collection[str] = []
    if isinstance(selector, dict):
        path: Path = (*here, "nodeSelector")
        foreign = [key for key, value in selector.items() if _FOREIGN.search(f"{key} {value}")]
        for key in foreign:
            if key in nodes:
                draft.changes.append(Set((*path, key), nodes[key]))
                said = N_("{key}: {selector} became {key}: {nodes}")
                draft.note((*path, key), said, key=key, selector=selector[key], nodes=nodes[key])
            else:
                said = N_("left out: the node selector {key}: {selector}")
                draft.note((*path, key), said, key=key, selector=selector[key])
        removed = [key for key in foreign if key not in nodes]
    draft.entries(here, spec, "nodeSelector", nodes, removed)
    tolerations = listed(spec.get("tolerations"), (*here, "tolerations"))
    gone = [
        number
        for number, one in enumerate(tolerations)
        if isinstance(one, dict) and _FOREIGN.search(str(one.get("key", "")))
    ]
    for number in gone:
        said = N_("left out: the toleration of {tolerations}")
        draft.note((*here, "tolerations", number), said, tolerations=tolerations[number]["key"])
    draft.items(here, spec, "tolerations", gone, [])
    runtime = spec.get("runtimeClassName")
    if runtime and _FOREIGN.search(str(runtime)):
        draft.changes.append(Delete((*here, "runtimeClassName")))
        draft.note((*here, "runtimeClassName"), "left out: the runtime class {runtime}", runtime=runtime)
