"""Kind ``manifest``: manifests of Kubernetes that ask for GPUs; they are reported with what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from migrator.launch.k8s.cluster import DEFAULT_HARDWARE, tables
from migrator.launch.k8s.convert import job_kind
from migrator.launch.k8s.resources import is_gpu
from migrator.matchers.context import Match
from migrator.matchers.other_context import TextContext, found_in_text
from migrator.matchers.packs import Rule
from migrator.other_files.index import Setting

_FOREIGN = re.compile(r"nvidia|gpu", re.IGNORECASE)
_RESOURCES = re.compile(r"\bresources\.(?:limits|requests)\.")
_NODES = re.compile(r"\b(?:nodeSelector\.|tolerations\.\d+\.key\Z|matchExpressions\.\d+\.key\Z)")


def find(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The places of manifests that ask for GPUs; of a job that is converted by a command the first one."""
    document: dict[str, Optional[str]] = {}
    told = False
    for setting in context.index.content.settings:
        if setting.name in ("apiVersion", "kind"):
            if setting.name in document:
                document, told = {}, False
            document[setting.name] = setting.value
        elif setting.kind == "key" and document.get("apiVersion") and not told:
            what = _what(context, setting)
            if what:
                converted = bool(job_kind(document))
                told = converted
                yield _found(context, rules[0], setting, what, document.get("kind") or "manifest", converted)


def _what(context: TextContext, setting: Setting) -> str:
    """What of GPUs is at a place; empty for nothing."""
    key = context.index.text_of(setting.name_span)
    if _RESOURCES.search(setting.name) and is_gpu(key):
        return key
    if setting.name.endswith(".runtimeClassName") and setting.value == "nvidia":
        return "the runtime class nvidia"
    if _NODES.search(setting.name):
        texts = (key, setting.value) if ".nodeSelector." in f".{setting.name}" else (setting.value,)
        return next((text for text in texts if text and _FOREIGN.search(text)), "")
    return ""


def _found(
    context: TextContext, rule: Rule, setting: Setting, what: str, kind: str, converted: bool
) -> Match:
    hardware = context.hardware or DEFAULT_HARDWARE
    if converted:
        chosen = context.hardware or "HW"
        advice = (
            f"Convert it: npumigrate launch k8s --from {context.index.name} --hw {chosen} --platform PLATFORM"
            " (docs/launch.md), which knows the names of resources, labels and nodes."
        )
    else:
        names = " or ".join(
            f"{entry['hw'][hardware]['resource']} ({name})"
            for name, entry in tables()["platforms"].items()
            if hardware in entry["hw"]
        )
        advice = (
            f"Name what the cluster calls an NPU, such as {names} on {hardware}, and nodes that have them."
        )
    return found_in_text(
        context, rule, setting.name_span, api=what, message=f"this {kind} asks for {what}", advice=advice
    )
