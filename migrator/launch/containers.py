"""Containers with GPUs become containers with NPUs: services of Docker Compose, arguments of docker run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import yaml

from migrator.data_folders import reports_yaml
from migrator.files.yaml_size import expands_too_far
from migrator.language import MessageError, _
from migrator.launch.k8s.yaml_text import Draft, Path, at, changed_text, line_of

_MOST = 16  # NPUs of a machine
_SERVICES = re.compile(r"^[\s{]*[\"']?services\b", re.MULTILINE)
_RESERVED: Path = ("deploy", "resources", "reservations", "devices")


class Service(NamedTuple):
    """A service that asks for GPUs: the line that says so, and what the text of the file becomes.

    ``text`` is None where ``reason`` says why it is left. ``every``: all GPUs of the machine are asked for.
    """

    name: str
    line: int
    every: bool = False
    text: Optional[str] = None
    reason: str = ""


def _needed(numbers: Sequence[int]) -> tuple[list[str], list[str]]:
    """The device files that a container with some NPUs needs, and what of the driver, as Docker takes it."""
    needed = reports_yaml("launcher/container.yaml")
    files = [*(needed["npu"].format(number=number) for number in numbers), *needed["devices"]]
    return files, [f"{path}:{path}" for path in needed["mounts"]]


def run_options(numbers: Sequence[int]) -> list[str]:
    """The options of ``docker run`` for some NPUs."""
    files, mounts = _needed(numbers)
    return [*(f"--device={file}" for file in files), *(f"--volume={mount}" for mount in mounts)]


def numbers_of(asked: object) -> Optional[list[int]]:
    """The NPUs for ``2``, ``"device=0,2"``, ``["0", "2"]``; None for all.

    Raises MessageError for what names no devices by their numbers.
    """
    if asked is None or asked in ("all", -1):
        return None
    if isinstance(asked, list):
        names = [str(one) for one in asked]
    elif str(asked).isdecimal():
        names = [str(number) for number in range(min(int(str(asked)), _MOST + 1))]
    else:
        names = re.sub(r"\A[\"']?device=|[\"']", "", str(asked)).split(",")
    if not names or not all(name.isdecimal() for name in names) or len(names) > _MOST:
        raise MessageError("{asked!r} is not a list of device numbers", asked=asked)
    return [int(name) for name in names]


def services(text: str) -> Iterator[Service]:
    """The services of a compose file that ask for GPUs; nothing for another text."""
    if not _SERVICES.search(text):
        return
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None or expands_too_far(root):
            return
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return  # its reader has said so, or it has tags of compose
    found = data.get("services") if isinstance(data, dict) else None
    if not isinstance(found, dict):
        return
    for name, service in found.items():
        if isinstance(service, dict) and (places := [*_gpu_places(service)]):
            yield _service(text, root, data, str(name), places)


def _service(text: str, root: Any, data: dict[str, Any], name: str, places: list[Path]) -> Service:
    service = data["services"][name]
    here: Path = ("services", name)
    line = line_of(root, (*here, *places[0]))
    every = False
    try:
        if not all(_is_written_there(root, (*here, *place)) for place in places):
            raise MessageError("other services share the part that requests GPUs")
        asked = [numbers_of(one) for one in _asked(service)]
        known = [numbers for numbers in asked if numbers is not None]
        every = not known
        numbers = sorted({number for each in known for number in each}) or [0]
        draft = Draft(data)
        for place in places:
            draft.delete((*here, *place))
        files, mounts = _needed(numbers)
        for key, values in (("devices", [f"{file}:{file}" for file in files]), ("volumes", mounts)):
            present = service.get(key)
            if present is not None and not isinstance(present, list):
                raise MessageError("{key} is not a list", key=key)
            draft.entries((*here, key), [value for value in values if value not in (present or ())])
        new, anew = changed_text(text, [draft])
        if anew:
            raise MessageError("its format cannot be edited in place")
    except MessageError as error:
        return Service(name, line, reason=str(error))
    except (yaml.YAMLError, LookupError, TypeError):
        return Service(name, line, reason=_("unknown format"))
    return Service(name, line, every, new)


def _gpu_places(service: Mapping[str, Any]) -> Iterator[Path]:
    """Where a service asks for GPUs, the highest place that holds nothing else."""
    if service.get("runtime") == "nvidia":
        yield ("runtime",)
    if "gpus" in service:
        yield ("gpus",)
    reserved = _reserved(service)
    gpus = [number for number, item in enumerate(reserved) if _is_gpu(item)]
    if len(gpus) < len(reserved):
        yield from ((*_RESERVED, number) for number in gpus)
    elif gpus:
        depth = len(_RESERVED)
        while depth > 1 and len(at(service, _RESERVED[: depth - 1])) == 1:
            depth -= 1
        yield _RESERVED[:depth]


def _reserved(service: Mapping[str, Any]) -> list[Any]:
    """The devices that a service has reserved, as it lists them."""
    try:
        devices = at(service, _RESERVED)
    except (LookupError, TypeError):
        return []
    return devices if isinstance(devices, list) else []


def _is_gpu(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if item.get("driver") == "nvidia":
        return True
    every = item.get("capabilities")
    lists = (each if isinstance(each, list) else [each] for each in every) if isinstance(every, list) else ()
    return "driver" not in item and any("gpu" in each for each in lists)


def _asked(service: Mapping[str, Any]) -> Iterator[object]:
    """What a service says of which GPUs, or how many."""
    gpus = service.get("gpus")
    reserved = filter(_is_gpu, _reserved(service))  # others are not GPUs
    for item in (*(gpus if isinstance(gpus, list) else ()), *reserved):
        if isinstance(item, dict):
            yield item.get("device_ids", item.get("count"))
    if isinstance(gpus, (str, int)):
        yield gpus
    environment = service.get("environment")
    if isinstance(environment, list):
        pairs = (str(one).partition("=") for one in reversed(environment))  # the first one counts
        environment = {name: value for name, sign, value in pairs if sign}
    if isinstance(environment, dict):
        yield environment.get("NVIDIA_VISIBLE_DEVICES")


def _is_written_there(root: Any, path: Path) -> bool:
    """Whether a place is written below each of the keys that lead to it: neither an alias nor merged."""
    node = root
    for step in path:
        entries = enumerate(node.value) if isinstance(step, int) else node.value
        below = next((value for key, value in entries if getattr(key, "value", key) == step), None)
        if below is None or below.start_mark.index < node.start_mark.index:
            return False
        node = below
    return True
