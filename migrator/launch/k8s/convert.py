"""Manifests for GPUs become manifests for NPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from migrator.files.yaml_size import expands_too_far
from migrator.language import N_, _
from migrator.launch.k8s.cluster import Cluster, ManifestError, PlaceError, is_gpu
from migrator.launch.k8s.pods import Pod, about_gpus, change_labels, change_pod
from migrator.launch.k8s.yaml_text import Draft, Path, changed_text, line_of
from migrator.launch.target import Launch

PYTORCH_JOB = "PyTorchJob"
VOLCANO_JOB = "VolcanoJob"
_KINDS = {("kubeflow.org", "PyTorchJob"): PYTORCH_JOB, ("batch.volcano.sh", "Job"): VOLCANO_JOB}
_API = {PYTORCH_JOB: "kubeflow.org/v1", VOLCANO_JOB: "batch.volcano.sh/v1alpha1"}


def convert(text: str, file: str, cluster: Cluster, image: str = "") -> Launch:
    """The manifests of a file for the NPUs of ``cluster``; what is not about GPUs keeps its text.

    Raises ManifestError with file and line where there is no job to convert, or one that is not understood.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        documents = list(yaml.safe_load_all(text))
    except yaml.MarkedYAMLError as error:
        mark, why = error.problem_mark or error.context_mark, error.problem or error.context
        place = f"{file}:{mark.line + 1}" if mark else file
        raise ManifestError("{place}: not YAML: {problem}", place=place, problem=why) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise ManifestError("{file}: not YAML: {split}", file=file, split=why) from None
    if any(map(expands_too_far, nodes)):
        raise ManifestError("{file}: its aliases expand to too many values: write them out", file=file)
    drafts: list[Draft] = []
    for node, document in zip(nodes, documents):
        try:
            double = _double(node)
            if double:
                said = _("duplicate key {value}", value=double.value)
                raise ManifestError(f"{file}:{double.start_mark.line + 1}: {said}")
            drafts.append(change(document, cluster, image))
        except PlaceError as error:
            raise ManifestError(f"{file}:{line_of(node, error.path)}: {error}") from None
        except RecursionError:
            said = _("this document contains itself")
            raise ManifestError(f"{file}:{line_of(node, ())}: {said}") from None
    if not any(map(job_kind, documents)):
        raise ManifestError("{file}: neither a PyTorchJob nor a Volcano Job", file=file)
    new, anew = changed_text(text, drafts)
    notes = []
    for number, (node, draft) in enumerate(zip(nodes, drafts)):
        lines = sorted(((line_of(node, path), note) for path, note in draft.notes), key=lambda one: one[0])
        notes += [f"{file}:{line}: {note}" for line, note in dict.fromkeys(lines)]
        if number in anew:
            said = _("this document loses its comments")
            notes.append(f"{file}:{line_of(node, ())}: {said}")
    return Launch({file: new}, tuple(notes))


def job_kind(document: Any) -> str:
    """``PyTorchJob`` or ``VolcanoJob``, or nothing for any other document."""
    if not isinstance(document, dict):
        return ""
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return _KINDS.get((group, str(document.get("kind"))), "")


def change(document: Any, cluster: Cluster, image: str) -> Draft:
    """The changes of one document. Raises PlaceError for one that is not understood."""
    draft = Draft(document)
    kind = job_kind(document)
    if not kind:
        for path, text in _texts(document, ()):
            if path[-1:] == (text,) and is_gpu(text):
                what = document.get("kind") if isinstance(document, dict) else ""
                said = N_("this {kind} requests GPUs: only PyTorchJobs and Volcano Jobs can be converted")
                raise PlaceError(path, said, kind=what or "document")
    elif document["apiVersion"] != _API[kind]:
        said = N_("{document} is not supported, only {api} is")
        raise PlaceError(("apiVersion",), said, document=document["apiVersion"], api=_API[kind])
    else:
        _change_job(draft, kind, cluster, image)
    for path, text in _texts(document, ()):
        words = about_gpus(text)
        if words and not draft.settled(path) and path[-1:] not in (("name",), ("namespace",)):
            draft.note(path, "left unchanged: {words}", words=", ".join(words))
    return draft


def _change_job(draft: Draft, kind: str, cluster: Cluster, image: str) -> None:
    spec = draft.mapping(("spec",))
    of_kubeflow = kind == PYTORCH_JOB
    by_volcano = not of_kubeflow and spec.get("schedulerName", "volcano") == "volcano"
    path: Path = ("spec", "pytorchReplicaSpecs" if of_kubeflow else "tasks")
    steps: Iterable[str | int] = draft.mapping(path) if of_kubeflow else range(len(draft.listed(path)))
    pods = []
    for step in steps:
        here = (*path, step)
        if of_kubeflow and step not in ("Master", "Worker"):
            raise PlaceError(here, "{role} is neither Master nor Worker", role=step)
        count = _replicas(draft.mapping(here), here)
        if step == "Master" and count != 1:
            raise PlaceError((*here, "replicas"), "a PyTorchJob has one Master, not {count}", count=count)
        pods.append((count, change_pod(draft, (*here, "template"), cluster, image, by_volcano)))
    with_npus = [(count, pod.npus) for count, pod in pods if pod.npus]
    if with_npus:
        change_labels(draft, (), cluster)
        shares = ", ".join(f"{count} × {npus}" for count, npus in with_npus)
        total = sum(count * npus for count, npus in with_npus)
        said = N_("assumed: {about}, {hardware}: NPUs {shares}, world size {total}")
        draft.remark((), said, about=_(cluster.about), hardware=cluster.hardware, shares=shares, total=total)
    else:
        draft.remark((), "left unchanged: no container of this job requests GPUs")
    if of_kubeflow:
        _ranks_per_pod(draft, spec, [pod for _count, pod in pods])
        return
    total, least = sum(count for count, _pod in pods), spec.get("minAvailable")
    if isinstance(least, int) and least > total:
        said = N_("left unchanged: minAvailable is {least} of {total} pods")
        draft.note(("spec", "minAvailable"), said, least=least, total=total)


def _ranks_per_pod(draft: Draft, spec: dict[str, Any], pods: Sequence[Pod]) -> None:
    """``nprocPerNode``: "gpu" and "auto" ask CUDA, so it has to be a number."""
    npus = {pod.npus for pod in pods if pod.npus}
    if len(npus) != 1:
        return
    number = npus.pop()
    elastic = spec.get("elasticPolicy")
    places: list[tuple[Path, Any]] = [(("spec", "nprocPerNode"), spec.get("nprocPerNode"))]
    if isinstance(elastic, dict):
        places.append((("spec", "elasticPolicy", "nProcPerNode"), elastic.get("nProcPerNode")))
    for path, value in places:
        if value in ("gpu", "auto"):
            draft.set(path, str(number))
            draft.note(path, "{path}: {value} became {number}", path=path[-1], value=value, number=number)
        elif value is not None and str(value) != str(number):
            said = N_("left unchanged: {path} is {value}, and a pod has {number} NPUs")
            draft.note(path, said, path=path[-1], value=value, number=number)
    if any(pod.asks for pod in pods) and all(value is None for _, value in places):
        draft.put(("spec",), "nprocPerNode", str(number), first=True)
        said = N_("added: nprocPerNode {number}, as torchrun does not count NPUs by itself")
        draft.remark(("spec",), said, number=number)


def _replicas(holder: dict[str, Any], path: Path) -> int:
    count = holder.get("replicas", 1)
    if "$" in str(count):
        said = N_("replicas: {count} is a template variable: fill it in first (envsubst)")
        raise PlaceError((*path, "replicas"), said, count=count)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise PlaceError((*path, "replicas"), "replicas: {count!r} is not a number of pods", count=count)
    return count


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every key and text with its place, a key before what it holds."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield (*path, key), str(key)
            yield from _texts(entry, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*path, number))
    elif isinstance(value, str):
        yield path, value


def _double(node: Any) -> Any:
    """The key of a mapping that was there before: Kubernetes takes only one of the two."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen and key.value != "<<":
                return key
            seen.add(key.value)
            below = _double(value)
            if below:
                return below
    elif isinstance(node, yaml.SequenceNode):
        return next(filter(None, map(_double, node.value)), None)
    return None
