"""What changes in a pod's template so that its containers get NPUs, and their commands ask for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from migrator.api_support import env_vars
from migrator.language import N_, _
from migrator.launch.k8s.cluster import Cluster, Mount, PlaceError, is_gpu, is_slice, tables
from migrator.launch.k8s.yaml_text import Draft, Path
from migrator.launch.mpi import LAUNCHERS, MpiLineError, is_launcher, plan, unread
from migrator.launch.rank_table import RankTableError
from migrator.launch.target import variables

_FOREIGN = re.compile(r"nvidia|cuda|gpu", re.IGNORECASE)
_CUDA_SIDE = re.compile(r"(?:TORCH_)?NCCL_|CUDA_|CUDNN_|NVIDIA_|NVSHMEM_")
_NPU_IMAGE = re.compile(r"ascend|cann|(?<![a-z])npu", re.IGNORECASE)
_NPU = re.compile(r"huawei\.com/(?:Ascend|ascend-|npu\Z)")
_NETWORK = re.compile(r"\Ardma/|mellanox|infiniband|amazonaws\.com/efa", re.IGNORECASE)
_SECTIONS = ("limits", "requests")

# An option's name with its value, in one word or before it.
_DEVICE = r"--?(?:[\w-]*[-_])?(?:device|device[-_]type|accelerator)"
_VALUES = (
    (re.compile(r"(?<![\w-])(--?[\w-]*backend[ =]+[\"']?)nccl\b(?![\w.:/-])"), r"\g<1>hccl"),
    (re.compile(rf"(?<![\w-])({_DEVICE}[ =]+[\"']?)cuda\b(?![\w./-])"), r"\g<1>npu"),
)
_PROCESSES = re.compile(r"(--nproc(?:[-_]per[-_]node)?[ =]+[\"']?)(gpu|auto|\d+)\b")
_OPTION = re.compile(r"--?[\w-]+\Z")
_SMI = re.compile(r"(?<![\w./-])nvidia-smi(?=\s*(?:$|[;&|\n]))")
_SETTING = re.compile(r"(?<![\w$-])([A-Z][A-Z0-9_]+)=(\"[^\"]*\"|'[^']*'|[^\s;&|\"']*)")
_LEFT = re.compile(
    # From the beginning of a word only: its middle cannot fit where that does not.
    r"(?<![\w./:=-])[\w./:=-]*(?:cuda|nccl|nvidia|gpus?\b|nvcc|nsys|\bncu\b|infiniband|mellanox)[\w./:=-]*",
    re.IGNORECASE,
)
_LAUNCHER = re.compile(rf"(?<![\w./-])(?:[\w./-]*/)?(?:{'|'.join(map(re.escape, LAUNCHERS))})(?=\s|\Z)")
_SHELL = re.compile(r"[;&|<>()$`\n]")
_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")


class Pod(NamedTuple):
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
    own, initial = (_items(draft, (*here, key)) for key in ("containers", "initContainers"))
    counts = {place: _resources(draft, place, cluster) for place in (*own, *initial)}
    asks = False
    values: dict[str, dict[str, Any]] = {one["name"]: {"value": one["value"]} for one in variables()}
    if cluster.devices and scheduler == "volcano":
        source = {"fieldRef": {"fieldPath": f"metadata.annotations['{cluster.resource}']"}}
        values[cluster.devices] = {"valueFrom": source}
    for place, npus in counts.items():
        _environment(draft, place, values if npus else {})
        asks |= _command(draft, place, npus)
        if npus:
            _image(draft, (*place, "image"), image)
    _volumes(draft, here, counts, cluster)
    _scheduling(draft, here, cluster.nodes if any(counts.values()) else {})
    if any(counts.values()):
        change_labels(draft, path, cluster)
    return Pod(sum(counts[place] for place in own), asks)


def _items(draft: Draft, path: Path) -> list[Path]:
    return [(*path, number) for number, _item in enumerate(draft.listed(path))]


def change_labels(draft: Draft, path: Path, cluster: Cluster) -> None:
    """Add the labels of the cluster software to a job or a pod's template."""
    holder = draft.mapping(path) if path else draft.data
    if isinstance(holder.get("metadata"), dict):
        draft.entries((*path, "metadata", "labels"), dict(cluster.labels))
    elif cluster.labels and holder.get("metadata") is None:
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
        said = N_("limits and requests of devices must be equal: {numbers}")
        numbers = " and ".join(f"{section} {count}" for section, count in counts.items())
        raise PlaceError(path, said, numbers=numbers)
    npus = next(iter(counts.values()), 0)
    names = (str(name) for names in held.values() for name in names)
    name = next(filter(_NPU.match, names), cluster.resource)
    for section in [section for section in _SECTIONS if npus and section not in counts]:
        draft.entries((*path, section), {name: npus})
    if npus and (problem := cluster.count_problem(npus)):
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
        raise PlaceError(
            (*path, gpus[0]), "one container requests {gpus} and {npus}", gpus=gpus[0], npus=npus[0]
        )
    if not gpus and not npus:
        return None
    numbers = [_number(held[name], (*path, name)) for name in gpus or npus]
    if gpus:
        draft.rename((*path, gpus[0]), cluster.resource)
    if len(gpus) > 1:
        total = sum(numbers)
        draft.set((*path, gpus[0]), str(total) if isinstance(held[gpus[0]], str) else total)
    for name in gpus:
        if name != gpus[0]:
            draft.delete((*path, name))
        whole = _(" (a whole NPU for each slice)") if is_slice(name) else ""
        said = N_("{name} became {resource}{whole}")
        draft.note((*path, name), said, name=name, resource=cluster.resource, whole=whole)
    return sum(numbers)


def _number(value: Any, path: Path) -> int:
    text = str(value)
    if "$" in text:
        raise PlaceError(
            path,
            "{path}: {text} is a template variable: fill it in first (envsubst)",
            path=path[-1],
            text=text,
        )
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise PlaceError(path, "{path}: {value!r} is not a number of devices", path=path[-1], value=value)
    return int(text)


def _environment(draft: Draft, place: Path, additions: Mapping[str, Mapping[str, Any]]) -> None:
    """Change the variables; the container gets the ``additions`` that it has not."""
    path: Path = (*place, "env")
    entries = [draft.mapping(each) for each in _items(draft, path)]
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
            draft.note(here, "left unchanged: {name} (unknown)", name=name)
    added = [{"name": name, **value} for name, value in additions.items() if name not in names]
    if added:
        draft.remark(place, "added: {names}", names=_(", ").join(one["name"] for one in added))
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
    whole = _launched(old)
    # bash -c "mpirun …", or the words of the line themselves
    launched = whole or (_launched(old[-1:]) if old[:1] and old[0].endswith("sh") else None)
    if launched:
        command, notes = launched
        new = ["bash", "-c", command] if whole else [*old[:-1], command]
        for note in (_("the command became {command}", command=command), *notes):
            draft.note(words[0][0], note)
    else:
        new = _words_for_npus(old, npus)
    for (path, word), other in zip(words, new):
        if other == word:
            continue
        draft.set(path, other)
        if not launched:
            draft.rewrite[word, other] = lambda text: _for_npus(text, npus)
            before, after = word.split(), other.split()
            changes = [
                _("{name} became {new}", name=" ".join(before[a:b]), new=" ".join(after[c:d]))
                for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
                if kind != "equal"
            ]
            draft.note(path, _(", ").join(dict.fromkeys(changes)))
    for key in ("command", "args"):
        rest = [int(path[-1]) for path, _word in words[len(new) :] if path[-2] == key]
        draft.entries((*place, key), [], rest)
    for (path, _old), word in zip(words, new):
        if left := about_gpus(word):
            draft.note(path, "left unchanged: {left}", left=", ".join(left))
        if _LAUNCHER.search(word):
            draft.note(path, "left unchanged: an MPI line with hosts (see npumigrate launch mpi)")
    text = " ".join(new)
    for _option, count in _PROCESSES.findall(text) if npus else ():
        if count.isdigit() and int(count) != npus:
            said = N_("left unchanged: {count} ranks are started in a pod with {npus} NPUs")
            draft.remark(place, said, count=int(count), npus=npus)
    return bool(npus and _TORCHRUN.search(text)) and not re.search(r"--nproc[-_]per[-_]node", text)


def _for_npus(text: str, npus: int) -> str:
    """A command, or a line of shell, with its NPU equivalents: backends, devices, variables, ``nvidia-smi``.

    ``--nproc_per_node gpu`` and ``auto`` count devices that CUDA knows: they become the number of NPUs.
    """
    for pattern, new in _VALUES:
        text = pattern.sub(new, text)
    if npus:
        text = _PROCESSES.sub(
            lambda m: m.group(1) + (m.group(2) if m.group(2).isdigit() else str(npus)), text
        )
    text = _SMI.sub("npu-smi info", text)
    return _SETTING.sub(_renamed, text)


def _renamed(match: re.Match[str]) -> str:
    name, value = match.groups()
    known = env_vars.look_up(name)
    if known is None or not known.npu or not env_vars.carries_over(known, value.strip("\"'")):
        return match.group()
    return f"{known.npu}={value}"


def _words_for_npus(words: Sequence[str], npus: int) -> list[str]:
    """The same for a list of words, where an option's value may be the next word."""
    result = [_for_npus(word, npus) for word in words]
    for number, option in enumerate(result[:-1], 1):
        if _OPTION.match(option):
            result[number] = _for_npus(f"{option} {result[number]}", npus)[len(option) + 1 :]
    return result


def _launched(words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """What an ``mpirun`` or ``horovodrun`` on one host becomes, with what is to be said of it.

    None where it is no such line, names hosts, or is not understood.
    """
    if len(words) == 1 and not _SHELL.search(words[0].strip()):
        try:
            words = shlex.split(words[0])
        except ValueError:
            return None
    if not words or not is_launcher(words[0]):
        return None
    try:
        found = plan(words, unread)
    except (MpiLineError, RankTableError):
        return None
    return (found.commands[0], found.notes) if [name for name, _ in found.hosts] == ["localhost"] else None


def about_gpus(text: str) -> list[str]:
    """What in a text still speaks of GPUs, each once."""
    return list(dict.fromkeys(match.group() for match in _LEFT.finditer(text)))


def _image(draft: Draft, path: Path, image: str) -> None:
    present = draft.mapping(path[:-1]).get("image")
    if image and isinstance(present, str) and present != image:
        draft.set(path, image)
        draft.note(path, "the image {present} became {image}", present=present, image=image)
    elif image and present is None:
        draft.put(path[:-1], "image", image)
    elif not image and not _NPU_IMAGE.search(str(present)):
        said = N_(
            "left unchanged: the image {present}; it must contain CANN and torch_npu (--image sets one)"
        )
        draft.note(path, said, present=present)


def _volumes(draft: Draft, here: Path, counts: Mapping[Path, int], cluster: Cluster) -> None:
    """Mount the driver of the NPUs instead of that of the GPUs; ``counts`` has the NPUs of each container."""
    volumes = _mappings(draft, (*here, "volumes"))
    foreign = {
        number: one for number, one in enumerate(volumes) if re.match(tables()["gpu_paths"], _host_path(one))
    }
    for number, one in foreign.items():
        said = N_("left out: the volume of the node's {volumes}")
        draft.note((*here, "volumes", number), said, volumes=_host_path(one))
    gone = [one.get("name") for one in foreign.values()]
    kept = [one for number, one in enumerate(volumes) if number not in foreign]
    needed: dict[str, dict[str, Any]] = {}
    for place, npus in counts.items():
        mounts = _mappings(draft, (*place, "volumeMounts"))
        removed = [number for number, one in enumerate(mounts) if one.get("name") in gone]
        paths = [str(one.get("mountPath", "")).rstrip("/") for one in mounts if one.get("name") not in gone]
        # Something may be mounted there already, or above it.
        covered = tuple(f"{path}/" for path in paths if path)
        missing = [each for each in cluster.mounts if npus and not f"{each.path}/".startswith(covered)]
        added = [{"name": _volume(mount, kept, needed), "mountPath": mount.path} for mount in missing]
        if added:
            said = N_("added: the mounts {missing}")
            draft.remark(place, said, missing=_(", ").join(mount.path for mount in missing))
        draft.entries((*place, "volumeMounts"), added, removed)
    draft.entries((*here, "volumes"), [{"name": name, **source} for name, source in needed.items()], foreign)


def _volume(mount: Mount, volumes: Sequence[Mapping[str, Any]], needed: dict[str, dict[str, Any]]) -> str:
    """The name of the volume to mount: one that is there, or a new one, which goes into ``needed``."""
    memory = {"emptyDir": {"medium": "Memory"}}
    taken, name = [one.get("name") for one in volumes], mount.name
    for one in volumes:
        if not mount.memory and _host_path(one).rstrip("/") == mount.path:
            return str(one.get("name"))
        if mount.memory and one.get("name") == name and one.get("emptyDir") == memory["emptyDir"]:
            return name
    while name in taken:
        name += "-npu"
    needed[name] = memory if mount.memory else {"hostPath": {"path": mount.path}}
    return name


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
        else:
            said = N_("left out: the node selector {key}: {selector}")
            removed.append(key)
        draft.note((*path, key), said, key=key, selector=value, nodes=nodes.get(key))
    draft.entries(path, dict(nodes), removed)
    path = (*here, "tolerations")
    keys = [str(one.get("key", "")) if isinstance(one, dict) else "" for one in draft.listed(path)]
    gone = [number for number, key in enumerate(keys) if _FOREIGN.search(key)]
    for number in gone:
        draft.note((*path, number), "left out: the toleration of {tolerations}", tolerations=keys[number])
    draft.entries(path, [], gone)
    runtime = spec.get("runtimeClassName")
    if runtime and _FOREIGN.search(str(runtime)):
        draft.delete((*here, "runtimeClassName"))
        draft.note((*here, "runtimeClassName"), "left out: the runtime class {runtime}", runtime=runtime)
