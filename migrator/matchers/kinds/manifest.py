"""Kind ``manifest``: manifests of Kubernetes that ask for GPUs.

What a cluster calls its NPUs depends on the product line: where that is named, jobs are converted as by
``launch k8s --from``; everything else is reported with what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from migrator.findings.edits import line_edits
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.launch.k8s.cluster import DEFAULT_HARDWARE, ManifestError, cluster, tables
from migrator.launch.k8s.convert import convert, job_kind
from migrator.launch.k8s.resources import is_gpu
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Rule
from migrator.other_files.index import Setting

_FOREIGN = re.compile(r"nvidia|gpu", re.IGNORECASE)
_RESOURCES = re.compile(r"\bresources\.(?:limits|requests)\.")
_NODES = re.compile(r"\b(?:nodeSelector\.|tolerations\.\d+\.key\Z|matchExpressions\.\d+\.key\Z)")


def find(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The places of manifests that ask for GPUs; of a job that can be converted the first one."""
    document: dict[str, Optional[str]] = {}
    told = False
    edits = None
    for setting in context.index.content.settings:
        if setting.name in ("apiVersion", "kind"):
            if setting.name in document:
                document, told = {}, False
            document[setting.name] = setting.value
        elif setting.kind == "key" and document.get("apiVersion") and not told:
            what = _what(context, setting)
            if what:
                kind = document.get("kind") or "manifest"
                told = bool(job_kind(document))
                if told and edits is None:  # all jobs of a file are converted together
                    edits, problem = _converted(context)
                    yield _of_job(context, rules[0], setting, what, kind, edits, problem)
                elif not told:
                    yield _reported(context, rules[0], setting, what, kind)


def _what(context: TextContext, setting: Setting) -> str:
    """What of GPUs is at a place; empty for nothing."""
    key = context.index.text_of(setting.name_span)
    if _RESOURCES.search(setting.name) and is_gpu(key):
        return key
    if setting.name.endswith(".runtimeClassName") and setting.value == "nvidia":
        return _("the runtime class nvidia")
    if _NODES.search(setting.name):
        texts = (key, setting.value) if ".nodeSelector." in f".{setting.name}" else (setting.value,)
        return next((text for text in texts if text and _FOREIGN.search(text)), "")
    return ""


def _converted(context: TextContext) -> tuple[list[Edit], str]:
    """The edits that convert a file, or why there are none."""
    if not context.hardware or context.index.type != "yaml":
        return [], ""
    data, name = context.index.data, context.index.name
    try:
        new = convert(data.decode("utf-8"), name, cluster(hardware=context.hardware)).text
    except ManifestError as error:
        return [], f"{error}. "
    return line_edits(data, new.encode("utf-8")), ""


def _of_job(
    context: TextContext, rule: Rule, setting: Setting, what: str, kind: str, edits: list[Edit], problem: str
) -> Match:
    command = f"npumigrate launch k8s --from {context.index.name} --hw {context.hardware or 'HW'}"
    said = {"command": command, "problem": problem}
    if edits:
        about = cluster(hardware=context.hardware).about
        advice = _(
            "It is converted for {about}; for another cluster: {command} --platform PLATFORM.",
            about=about,
            **said,
        )
    elif context.hardware and not problem and context.index.type == "yaml":
        advice = _("Left unchanged: decide whether the job needs it.")
    else:
        advice = _(
            "{problem}Convert it: {command} --platform PLATFORM (docs/launch.md), which knows the "
            "names of resources, labels and nodes.",
            **said,
        )
    message = _("this {kind} requests {what}", kind=kind, what=what)
    span = setting.name_span
    return found_in_text(
        context, rule, span, api=what, edits=edits, message=message, advice=advice, safety="unsafe"
    )


def _reported(context: TextContext, rule: Rule, setting: Setting, what: str, kind: str) -> Match:
    hardware = context.hardware or DEFAULT_HARDWARE
    names = " or ".join(
        f"{entry['hw'][hardware]['resource']} ({name})"
        for name, entry in tables()["platforms"].items()
        if hardware in entry["hw"]
    )
    advice = _(
        "Name the cluster's NPU resource, such as {names} on {hardware}, and nodes that have it.",
        names=names,
        hardware=hardware,
    )
    message = _("this {kind} requests {what}", kind=kind, what=what)
    return found_in_text(context, rule, setting.name_span, api=what, message=message, advice=advice)
