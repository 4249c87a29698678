"""A job in a few words, from the command line's options or a file of ``key=value`` lines, and its manifest.

The frames of manifests are in ``reports/launcher/k8s.yaml``.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Sequence
from dataclasses import field, fields, replace
from difflib import get_close_matches
from typing import Any, Callable, NamedTuple

from migrator.data_folders import reports_yaml
from migrator.language import N_, _, did_you_mean
from migrator.launch.fault_texts import fault_texts
from migrator.launch.k8s.cluster import Cluster, ManifestError, cluster, tables
from migrator.launch.k8s.convert import PYTORCH_JOB, VOLCANO_JOB, change
from migrator.launch.k8s.yaml_text import dump
from migrator.launch.mpi import PYTHON, PYTHON_FLAGS
from migrator.launch.target import NAME, Launch, filled, rank_options
from migrator.light import Frozen

KINDS = (PYTORCH_JOB, VOLCANO_JOB)
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:m|[kMGTPE]|[KMGTPE]i)?\Z")
_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@-]*\Z")
_FOLDER = re.compile(r"/.*\Z")
_RESOURCE = re.compile(r"[a-z0-9.-]+/[A-Za-z0-9][\w.-]*\Z")
_OF_RESOURCE = "name of a resource such as huawei.com/Ascend910"
_LONGEST_NAME = 50  # a pod's name has the role and a number as well, 63 characters in all
_MOST = 4096


class Volume(NamedTuple):
    """A volume and where it is mounted."""

    source: dict[str, Any]
    path: str
    read_only: bool


def _kind(value: str) -> str:
    if value not in KINDS:
        lower = {kind.lower(): kind for kind in KINDS}
        near = get_close_matches(value.lower(), lower, n=1)
        hint = _("; did you mean {near}?", near=lower[near[0]]) if near else ""
        said = N_("{value!r} is not one of {kinds}{hint}")
        raise ManifestError(said, value=value, kinds=", ".join(KINDS), hint=hint)
    return value


def _label(value: str) -> str:
    if not _LABEL.match(value) or len(value) > _LONGEST_NAME:
        said = N_(
            "{value!r} is not a valid name: use at most {longest_name} of a-z, 0-9 and '-', not at an end"
        )
        raise ManifestError(said, value=value, longest_name=_LONGEST_NAME)
    return value


def _number(value: str | int) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST):
        raise ManifestError("{text!r} is not a number from 1 to {most}", text=text, most=_MOST)
    return int(text)


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not pattern.match(value):
            raise ManifestError("{value!r} is not a {what}", value=value, what=what)
        return value

    return check


def _variables(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    result: dict[str, str] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not _VARIABLE.match(name):
            raise ManifestError("{text!r} is not NAME=VALUE", text=text)
        if name in result:
            raise ManifestError("duplicate variable {name}", name=name)
        result[name] = value
    return tuple(result.items())


def _volumes(values: Sequence[str]) -> tuple[Volume, ...]:
    result: dict[str, Volume] = {}
    for one in map(_volume, values):
        if result.setdefault(one.path, one) is not one:
            raise ManifestError("two volumes are mounted at {path}", path=one.path)
    return tuple(result.values())


def _volume(text: str) -> Volume:
    rest, colon, ending = text.rpartition(":")
    read_only = bool(colon) and ending == "ro"
    parts = (rest if read_only else text).split(":")
    if len(parts) == 2 and all(part.startswith("/") for part in parts):
        source: dict[str, Any] = {"hostPath": {"path": parts[0]}}
    elif len(parts) == 3 and parts[0] == "pvc" and _LABEL.match(parts[1]) and parts[2].startswith("/"):
        source = {"persistentVolumeClaim": {"claimName": parts[1]}}
    elif len(parts) == 4 and parts[0] == "nfs" and parts[1] and all(p.startswith("/") for p in parts[2:]):
        source = {"nfs": {"server": parts[1], "path": parts[2]}}
    else:
        forms = _("/on/the/node:/in/the/pod, pvc:CLAIM:/in/the/pod or nfs:SERVER:/exported:/in/the/pod")
        said = N_("{text!r} is not one of {forms}, each optionally followed by :ro")
        raise ManifestError(said, text=text, forms=forms)
    return Volume(source, parts[-1].rstrip("/") or "/", read_only)


def _command(value: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value)
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ManifestError("cannot be split into words: {error}", error=error) from None
    # What only a shell understands is left to one.
    return ("bash", "-c", value) if re.search(r"[;&|<>`$]", value) else tuple(words)


class Field(NamedTuple):
    """What makes a field's value, and its names as an option and in a job file."""

    value: Callable[[Any], Any]
    option: str
    keys: tuple[str, ...]
    of_manifest: bool = False  # may be given for a manifest that is there, too


def _field(default: object, value: Callable[[Any], Any], option: str, keys: str, later: bool = False) -> Any:
    return field(default=default, metadata={"field": Field(value, option, tuple(keys.split()), later)})


_cpu, _memory = "quantity such as 32 or 500m", "quantity such as 256Gi"


class Description(Frozen):
    """What a job is to be, in the order in which wrong values are reported.

    ``workers`` are all of its pods, ``npus`` those of each pod.
    """

    kind: str = _field(PYTORCH_JOB, _kind, "--kind", "kind")
    name: str = _field("", _label, "--name", "name")
    namespace: str = _field("", _label, "--namespace", "namespace")
    workers: int = _field(1, _number, "--workers", "worker_count")
    npus: int = _field(8, _number, "--npus", "worker_gpu worker_npu")
    cpu: str = _field("", _matching(_QUANTITY, _cpu), "--cpu", "worker_cpu")
    memory: str = _field("", _matching(_QUANTITY, _memory), "--memory", "worker_memory")
    queue: str = _field("", _label, "--queue", "queue")
    scheduler: str = _field("", _label, "--scheduler", "scheduler")
    folder: str = _field("", _matching(_FOLDER, "full path"), "--folder", "folder")
    variables: tuple[tuple[str, str], ...] = _field((), _variables, "--env", "env")
    volumes: tuple[Volume, ...] = _field((), _volumes, "--volume", "volume")
    command: tuple[str, ...] = _field((), _command, "-- COMMAND", "command")
    image: str = _field("", _matching(_IMAGE, "name of an image"), "--image", "worker_image", True)
    hardware: str = _field("", str, "--hw", "hw", True)
    platform: str = _field("", str, "--platform", "platform", True)
    accelerator_type: str = _field("", str, "--accelerator-type", "accelerator_type", True)
    resource: str = _field("", _matching(_RESOURCE, _OF_RESOURCE), "--resource", "resource", True)
    given: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()  # on the job file

    def cluster(self) -> Cluster:
        """What it runs on. Raises ManifestError where there is no such cluster."""
        return cluster(self.platform, self.hardware, self.accelerator_type, self.resource)


FIELDS: dict[str, Field] = {
    each.name: each.metadata["field"] for each in fields(Description) if each.metadata
}
_FIELD_OF = {key: name for name, each in FIELDS.items() for key in each.keys}
_LISTS = ("variables", "volumes")


def described(options: dict[str, Any], start: Description = Description()) -> Description:
    """The description with those fields that are in ``options``, each checked by its value.

    Texts become what the field holds. Raises ManifestError that names the option and what is wrong with it.
    """
    found = {}
    for name, value in options.items():
        try:
            found[name] = FIELDS[name].value(value)
        except ManifestError as error:
            raise ManifestError(f"{FIELDS[name].option}: {error}") from None
    return replace(start, **found, given=start.given | set(found))


def read_job(text: str, file: str) -> Description:
    """The description in a job file: ``key=value`` lines, empty ones, and comments behind ``#``.

    A parameter file for DLC is one: what of it means nothing here is named in ``notes``. Raises ManifestError
    with file and line for a key that there is not, one that is given twice, and a bad value.
    """
    options: dict[str, Any] = {}
    lines: dict[str, int] = {}
    notes: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, sign, value = (part.strip() for part in line.partition("="))
        place = f"{file}:{number}"
        if not sign:
            raise ManifestError("{place}: {line!r} is not key=value", place=place, line=line)
        if why := _of_dlc(key, value):
            notes.append(_("{place}: left out: {line} ({why})", place=place, line=line, why=why))
            continue
        several = key == "envs"  # DLC has the variables in one line: envs=A=1,B=2
        key = "env" if several else key
        if key not in _FIELD_OF:
            hint = did_you_mean(key, _FIELD_OF) or _("; known are {known}", known=", ".join(_FIELD_OF))
            raise ManifestError("{place}: unknown key {key!r}{key2}", place=place, key=key, key2=hint)
        name = _FIELD_OF[key]
        if name == "memory" and value.isdigit():
            value = f"{value}Gi"
            notes.append(_("{place}: {line} is {value}, as DLC counts", place=place, line=line, value=value))
        if name in _LISTS:
            parts = re.split(r",(?=[A-Za-z_][\w.-]*=)", value) if several else [value]
            options[name] = [*options.get(name, []), *parts]
        elif name in options:
            said = N_("{place}: {key} is given twice (first in line {lines})")
            raise ManifestError(said, place=place, key=key, lines=lines[name])
        else:
            options[name] = value
        lines.setdefault(name, number)
        try:
            FIELDS[name].value(options[name])
        except ManifestError as error:
            raise ManifestError(f"{place}: {key}: {error}") from None
    return replace(described(options), notes=tuple(notes))


def _of_dlc(key: str, value: str) -> str:
    """Why a line of a parameter file for DLC is left out; empty for the others."""
    if key in ("worker_gpu", "worker_cpu", "worker_memory") and value == "0":
        assumed = _("; assumed: {npus} NPUs (worker_npu, --npus)", npus=Description.npus)
        return _("0 means: the machine's own number") + (assumed if key == "worker_gpu" else "")
    return next((one["why"] for one in reports_yaml("launcher/dlc_keys.yaml") if key in one["keys"]), "")


def generate(job: Description) -> Launch:
    """The manifest of a job for the NPUs of its cluster.

    Raises ManifestError where something that it needs is missing, or does not fit.
    """
    for name, what in (("image", _("an image")), ("command", _("a command"))):
        if not getattr(job, name):
            raise ManifestError("a job needs {what}: {option}", what=what, option=FIELDS[name].option)
    if not job.name:  # that of the script which it runs
        script = next((word for word in job.command if word.endswith(".py")), "")
        name = re.sub(r"[^a-z0-9]+", "-", script.rpartition("/")[2][:-3].lower())
        job = replace(job, name=name[:40].strip("-") or "npu-job")
    if job.queue and job.kind == PYTORCH_JOB and job.scheduler != "volcano":
        raise ManifestError("a PyTorchJob has a queue only with --scheduler volcano")
    target = job.cluster()
    if problem := target.count_problem(job.npus):
        raise ManifestError(problem)
    notes: list[str] = []
    document = copy.deepcopy(tables()["jobs"][job.kind])
    document["metadata"] = _given(name=job.name, namespace=job.namespace)
    _fill(document["spec"], job, {"spec": _pod(job, target, notes)})
    draft = change(document, target, job.image)
    lines = [*job.notes, *_assumed(job), *notes, *(note for _, note in draft.notes)]
    return Launch({f"{job.name}.yaml": dump(draft.result())}, tuple(dict.fromkeys(lines)))


def _fill(spec: dict[str, Any], job: Description, template: dict[str, Any]) -> None:
    """Put the pods into the frame: a master, and the others as workers."""
    if job.kind == PYTORCH_JOB:
        spec["nprocPerNode"] = str(job.npus)
        roles = spec["pytorchReplicaSpecs"]
        parts = [roles["Master"], roles["Worker"]]
        if job.workers == 1:
            del roles["Worker"]
        if job.scheduler == "volcano":
            policy = {"minAvailable": job.workers, "queue": job.queue or "default"}
            spec["runPolicy"] = {"schedulingPolicy": policy}
    else:
        spec["minAvailable"] = job.workers
        spec["queue"] = job.queue or spec["queue"]
        spec["schedulerName"] = job.scheduler or spec["schedulerName"]
        parts = spec["tasks"]
        if job.workers == 1:
            spec["tasks"] = parts[:1]
    parts[0]["template"] = template
    if job.workers > 1:
        parts[1]["template"] = copy.deepcopy(template)
        parts[1]["replicas"] = job.workers - 1


def _pod(job: Description, target: Cluster, notes: list[str]) -> dict[str, Any]:
    resources = {target.resource: job.npus, **_given(cpu=job.cpu, memory=job.memory)}
    volumes = [(f"volume-{number}", one) for number, one in enumerate(job.volumes)]
    container = _given(
        name=tables()["container"],
        image=job.image,
        command=_container_command(job, notes),
        workingDir=job.folder,
        env=[{"name": name, "value": value} for name, value in job.variables],
        resources={"limits": resources, "requests": dict(resources)},
        volumeMounts=[
            {"name": name, "mountPath": one.path, **_given(readOnly=one.read_only)} for name, one in volumes
        ],
    )
    own = {"schedulerName": job.scheduler} if job.kind == PYTORCH_JOB else {"restartPolicy": "Never"}
    sources = [{"name": name, **one.source} for name, one in volumes]
    return {"containers": [container], **_given(volumes=sources, **own)}


def _given(**values: Any) -> dict[str, Any]:
    """The entries of a mapping that hold something."""
    return {name: value for name, value in values.items() if value}


def _container_command(job: Description, notes: list[str]) -> list[str]:
    """What a pod starts: one rank on each of its NPUs."""
    words = list(job.command)
    if NAME in [word.rsplit("/", 1)[-1] for word in words[:2]]:
        at = words.index("--") if "--" in words else len(words)
        # With its options for this job, which Kubernetes fills in.
        options = rank_options(job.npus, job.workers, "$(RANK)", "$(MASTER_ADDR)", "$(MASTER_PORT)")
        twice = [option for option in options[::2] if option in words[:at]]
        if twice:
            raise ManifestError("the job sets {twice} of {name}: leave it out", name=NAME, twice=twice[0])
        return words[:at] + options + words[at:]
    if not PYTHON.match(words[0]):
        said = N_("assumed: {words} starts the {npus} ranks of a pod itself; RANK is the number of the pod")
        notes.append(_(said, words=words[0], npus=job.npus))
        return words
    words.pop(0)
    while words and words[0] in PYTHON_FLAGS:
        notes.append(_("left out: {value} (torchrun starts Python itself)", value=words.pop(0)))
    if not words or (words[0].startswith("-") and words[0] != "-m"):
        said = N_("python {words}: only a script or a module (-m) can be started")
        raise ManifestError(said, words=" ".join(words[:1]))
    if words[0] == "-m" and len(words) > 1 and words[1].startswith("torch.distributed."):
        notes.append(
            _("assumed: the command starts the ranks of a pod itself; RANK is the number of the pod")
        )
        return list(job.command)
    notes.append(_("assumed: the image contains torchrun (torch 1.10 or newer)"))
    pods = "--standalone" if job.workers == 1 else f"--nnodes={job.workers}"
    starter = ["torchrun", pods, f"--nproc_per_node={job.npus}"]
    if job.workers > 1:
        starter += ['--node_rank="$RANK"', '--master_addr="$MASTER_ADDR"', '--master_port="$MASTER_PORT"']
    line = " ".join([*starter, shlex.join(words)])
    missing = shlex.quote(fault_texts()["set-env-missing"].line())
    return ["bash", "-c", filled("k8s_start.sh", {"@COMMAND@": line, "@SET_ENV_MISSING@": missing})]


def _assumed(job: Description) -> list[str]:
    lines = []
    if "name" not in job.given:
        lines.append(_("assumed: the job is called {name} (--name)", name=job.name))
    pods = "1 pod" if job.workers == 1 else _("{workers} pods", workers=job.workers)
    if not {"workers", "npus"} <= job.given:
        lines.append(_("assumed: {pods} with {npus} NPUs each (--workers, --npus)", pods=pods, npus=job.npus))
    if "hardware" not in job.given:
        lines.append(_("assumed: the hardware is A2 (--hw)"))
    return lines
