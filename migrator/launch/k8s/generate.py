"""A job's manifest from its description: the frames are in ``reports/launcher/k8s.yaml``."""

from __future__ import annotations

import copy
import re
import shlex
from dataclasses import replace
from typing import Any

from migrator.language import N_, _
from migrator.launch.fault_texts import fault_texts
from migrator.launch.k8s.cluster import Cluster, ManifestError, tables
from migrator.launch.k8s.convert import PYTORCH_JOB, change
from migrator.launch.k8s.description import Description
from migrator.launch.k8s.yaml_text import dump
from migrator.launch.mpi import PYTHON, PYTHON_FLAGS
from migrator.launch.script import NAME, rank_options
from migrator.launch.target import Launch, filled


def generate(job: Description) -> Launch:
    """The manifest of a job for the NPUs of its cluster.

    Raises ManifestError where something that it needs is missing, or does not fit.
    """
    if not job.image:
        raise ManifestError("a job needs {what}: {option}", what=_("an image"), option="--image")
    if not job.command:
        raise ManifestError("a job needs {what}: {option}", what=_("a command"), option="-- COMMAND")
    if not job.name:  # that of the script which it runs
        script = next((word for word in job.command if word.endswith(".py")), "")
        name = re.sub(r"[^a-z0-9]+", "-", script.rpartition("/")[2][:-3].lower())
        job = replace(job, name=name[:40].strip("-") or "npu-job")
    if job.queue and job.kind == PYTORCH_JOB and job.scheduler != "volcano":
        raise ManifestError("a PyTorchJob has a queue only with --scheduler volcano")
    cluster = job.cluster()
    problem = cluster.count_problem(job.npus)
    if problem:
        raise ManifestError(problem)
    notes: list[str] = []
    document = copy.deepcopy(tables()["jobs"][job.kind])
    document["metadata"] = _given(name=job.name, namespace=job.namespace)
    _fill(document, job, {"spec": _pod(job, cluster, notes)})
    draft = change(document, cluster, job.image)
    lines = [*job.notes, *_assumed(job), *notes, *(note for _, note in draft.notes)]
    text = dump(draft.result())
    return Launch({f"{job.name}.yaml": text}, tuple(dict.fromkeys(lines)))


def _fill(document: dict[str, Any], job: Description, template: dict[str, Any]) -> None:
    """Put the pods into the frame: a master, and the others as workers."""
    spec = document["spec"]
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


def _pod(job: Description, cluster: Cluster, notes: list[str]) -> dict[str, Any]:
    resources = {cluster.resource: job.npus, **_given(cpu=job.cpu, memory=job.memory)}
    volumes = [(f"volume-{number}", one) for number, one in enumerate(job.volumes)]
    mounts = [
        {"name": name, "mountPath": one.path, **_given(readOnly=one.read_only)} for name, one in volumes
    ]
    container = {
        "name": tables()["container"],
        "image": job.image,
        "command": _command(job, notes),
        **_given(
            workingDir=job.folder, env=[{"name": name, "value": value} for name, value in job.variables]
        ),
        "resources": {"limits": resources, "requests": dict(resources)},
        **_given(volumeMounts=mounts),
    }
    own = {"schedulerName": job.scheduler} if job.kind == PYTORCH_JOB else {"restartPolicy": "Never"}
    sources = [{"name": name, **one.source} for name, one in volumes]
    return {"containers": [container], **_given(volumes=sources, **own)}


def _given(**values: Any) -> dict[str, Any]:
    """The entries of a mapping that hold something."""
    return {name: value for name, value in values.items() if value}


def _command(job: Description, notes: list[str]) -> list[str]:
    """What a pod starts: one rank on each of its NPUs."""
    words = list(job.command)
    if NAME in [word.rsplit("/", 1)[-1] for word in words[:2]]:
        return _own_launcher(job, words)
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
        said = N_("assumed: the command starts the ranks of a pod itself; RANK is the number of the pod")
        notes.append(_(said))
        return list(job.command)
    notes.append(_("assumed: torchrun is in the image (torch 1.10 or newer)"))
    pods = "--standalone" if job.workers == 1 else f"--nnodes={job.workers}"
    starter = ["torchrun", pods, f"--nproc_per_node={job.npus}"]
    if job.workers > 1:
        starter += ['--node_rank="$RANK"', '--master_addr="$MASTER_ADDR"', '--master_port="$MASTER_PORT"']
    line = " ".join([*starter, shlex.join(words)])
    missing = shlex.quote(fault_texts()["set-env-missing"].line())
    return ["bash", "-c", filled("k8s_start.sh", {"@COMMAND@": line, "@SET_ENV_MISSING@": missing})]


def _own_launcher(job: Description, words: list[str]) -> list[str]:
    """``run_distributed_npu.sh`` with its options for this job, which Kubernetes fills in: ``$(RANK)``."""
    at = words.index("--") if "--" in words else len(words)
    options = rank_options(job.npus, job.workers, "$(RANK)", "$(MASTER_ADDR)", "$(MASTER_PORT)")
    twice = [option for option in options[::2] if option in words[:at]]
    if twice:
        raise ManifestError("{name} gets {twice} from the job: leave it out", name=NAME, twice=twice[0])
    return words[:at] + options + words[at:]


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
