"""A job in a few words: from the command line's options, or from a file of ``key=value`` lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, NamedTuple

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.launch.k8s.cluster import Cluster, ManifestError, cluster
from migrator.launch.k8s.convert import PYTORCH_JOB, VOLCANO_JOB

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


def _near(word: str, known: Iterable[str]) -> list[str]:
    """The known word that is most like one."""
    from difflib import get_close_matches

    return get_close_matches(word, known, n=1)


def _kind(value: str) -> str:
    if value in KINDS:
        return value
    lower = {kind.lower(): kind for kind in KINDS}
    near = _near(value.lower(), lower)
    hint = _("; did you mean {lower}?", lower=lower[near[0]]) if near else ""
    said = N_("{value!r} is not one of {kinds}{hint}")
    raise ManifestError(said, value=value, kinds=", ".join(KINDS), hint=hint)


def _label(value: str) -> str:
    if not _LABEL.match(value) or len(value) > _LONGEST_NAME:
        said = N_(
            "{value!r} is not a name: at most {longest_name} of a-z, 0-9 and '-', which is not at an end"
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
            raise ManifestError("{text!r} is no NAME=VALUE", text=text)
        if name in result:
            raise ManifestError("the variable {name} is set twice", name=name)
        result[name] = value
    return tuple(result.items())


def _volumes(values: Sequence[str]) -> tuple[Volume, ...]:
    result = {}
    for one in map(_volume, values):
        if one.path in result:
            raise ManifestError("two volumes are mounted at {path}", path=one.path)
        result[one.path] = one
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
        said = N_("{text!r} is not one of {forms}, each with :ro behind it or not")
        raise ManifestError(said, text=text, forms=forms)
    return Volume(source, parts[-1].rstrip("/") or "/", read_only)


def _command(value: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value)
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ManifestError("it cannot be split into words: {error}", error=error) from None
    # What only a shell understands is left to one.
    return ("bash", "-c", value) if re.search(r"[;&|<>`$]", value) else tuple(words)


class Field(NamedTuple):
    """What makes a field's value, and its names as an option and in a job file."""

    value: Callable[[Any], Any]
    option: str
    keys: tuple[str, ...]
    of_manifest: bool = False  # may be given for a manifest that is there, too


_QUANTITIES = "quantity such as 32 or 500m", "quantity such as 256Gi"
# By the names of Description's fields, in the order in which wrong values are reported.
FIELDS = {
    "kind": Field(_kind, "--kind", ("kind",)),
    "name": Field(_label, "--name", ("name",)),
    "namespace": Field(_label, "--namespace", ("namespace",)),
    "workers": Field(_number, "--workers", ("worker_count",)),
    "npus": Field(_number, "--npus", ("worker_gpu", "worker_npu")),
    "cpu": Field(_matching(_QUANTITY, _QUANTITIES[0]), "--cpu", ("worker_cpu",)),
    "memory": Field(_matching(_QUANTITY, _QUANTITIES[1]), "--memory", ("worker_memory",)),
    "queue": Field(_label, "--queue", ("queue",)),
    "scheduler": Field(_label, "--scheduler", ("scheduler",)),
    "folder": Field(_matching(_FOLDER, "full path"), "--folder", ("folder",)),
    "variables": Field(_variables, "--env", ("env",)),
    "volumes": Field(_volumes, "--volume", ("volume",)),
    "command": Field(_command, "-- COMMAND", ("command",)),
    "image": Field(_matching(_IMAGE, "name of an image"), "--image", ("worker_image",), True),
    "hardware": Field(str, "--hw", ("hw",), True),
    "platform": Field(str, "--platform", ("platform",), True),
    "accelerator_type": Field(str, "--accelerator-type", ("accelerator_type",), True),
    "resource": Field(_matching(_RESOURCE, _OF_RESOURCE), "--resource", ("resource",), True),
}
_FIELD_OF = {key: name for name, each in FIELDS.items() for key in each.keys}
_LISTS = ("variables", "volumes")


@dataclass(frozen=True)
class Description:
    """What a job is to be. ``workers`` are all of its pods, ``npus`` those of each pod."""

    kind: str = PYTORCH_JOB
    name: str = ""
    namespace: str = ""
    workers: int = 1
    npus: int = 8
    cpu: str = ""
    memory: str = ""
    queue: str = ""
    scheduler: str = ""
    folder: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    volumes: tuple[Volume, ...] = ()
    command: tuple[str, ...] = ()
    image: str = ""
    hardware: str = ""
    platform: str = ""
    accelerator_type: str = ""
    resource: str = ""
    given: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()  # on the job file

    def cluster(self) -> Cluster:
        """What it runs on. Raises ManifestError where there is no such cluster."""
        return cluster(self.platform, self.hardware, self.accelerator_type, self.resource)


def described(options: dict[str, Any], start: Description | None = None) -> Description:
    """The description with those fields that are in ``options``, each checked by its value.

    Texts become what the field holds. Raises ManifestError that says what is wrong with a value.
    """
    found = {name: FIELDS[name].value(value) for name, value in options.items()}
    start = start or Description()
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
            raise ManifestError("{place}: {line!r} is no key=value", place=place, line=line)
        why = _of_dlc(key, value)
        if why:
            notes.append(_("{place}: left out: {line} ({why})", place=place, line=line, why=why))
            continue
        several = key == "envs"  # DLC has the variables in one line: envs=A=1,B=2
        key = "env" if several else key
        if key not in _FIELD_OF:
            near = _near(key, _FIELD_OF)
            hint = _("; did you mean {near!r}?", near=near[0]) if near else ""
            hint = hint or _("; known are {field_of}", field_of=", ".join(_FIELD_OF))
            raise ManifestError("{place}: there is no key {key!r}{key2}", place=place, key=key, key2=hint)
        name = _FIELD_OF[key]
        if name == "memory" and value.isdigit():
            value = f"{value}Gi"
            notes.append(_("{place}: {line} is {value}, as DLC counts", place=place, line=line, value=value))
        if name in _LISTS:
            parts = re.split(r",(?=[A-Za-z_][\w.-]*=)", value) if several else [value]
            options[name] = [*options.get(name, []), *parts]
        elif name in options:
            said = N_("{place}: {key} is given twice, first on line {lines}")
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
        return _("0 leaves it to the kind of machine") + (assumed if key == "worker_gpu" else "")
    return next((one["why"] for one in reports_yaml("launcher/dlc_keys.yaml") if key in one["keys"]), "")
