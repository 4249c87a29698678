"""Faults of the NPUs' device files, and of the variables that say which NPUs are used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.doctor.fault import Fault, fault
from migrator.doctor.machine import Machine
from migrator.language import _

# Beside /dev/davinci<n>; what docker/OVERVIEW.md of torch_npu passes to a container.
_MANAGER = "/dev/davinci_manager"
_COMMON = (_MANAGER, "/dev/devmm_svm", "/dev/hisi_hdc")
_NAMES = re.compile(r"(\d+(-\d+)?|[A-Za-z]\w*-\d+)(,(\d+(-\d+)?|[A-Za-z]\w*-\d+))*")


def device_faults(machine: Machine) -> Iterator[Fault]:
    """Device files that are missing, or that the user may not open."""
    if machine.emulated is not None:
        return
    if not machine.exists(_MANAGER):
        yield fault("no-device", file=_MANAGER)
        return
    files = list(_COMMON)
    if machine.npus():
        files += [f"/dev/davinci{number}" for number in machine.npus()]
    else:
        yield fault("no-npu")
    for file in files:
        if not machine.exists(file):
            yield fault("no-device", file=file)
        elif not machine.is_ours(file):
            status = machine.path(file).stat()
            group, members = machine.group(status.st_gid)
            listed = machine.user.name in members and status.st_mode & 0o060 == 0o060
            yield fault("login-again" if listed else "device-permission", file=file, group=group)


def choice_faults(machine: Machine) -> Iterator[Fault]:
    """ASCEND_RT_VISIBLE_DEVICES and its like."""
    variables, npus = machine.variables, machine.npus()
    value = variables.get("ASCEND_RT_VISIBLE_DEVICES", "")
    problem = _problem(value, npus)
    if value and problem:
        yield fault("visible-devices", value=value, problem=problem, count=len(npus) or "none")
    container = variables.get("ASCEND_VISIBLE_DEVICES", "")
    if container and container != "void" and not _NAMES.fullmatch(container):
        yield fault("container-devices", value=container)
    cuda = variables.get("CUDA_VISIBLE_DEVICES", "")
    if cuda and not value:
        yield fault("cuda-devices", value=cuda)


def _problem(value: str, npus: list[int]) -> str:
    words = value.split(",")
    wrong = [word for word in words if not word.strip().isdecimal()]
    if wrong:
        return _("{wrong!r} is not a number", wrong=wrong[0])
    numbers = [int(word) for word in words]
    twice = [number for number in numbers if numbers.count(number) > 1]
    if twice:
        return _("{twice} is given twice", twice=twice[0])
    # In a container with /dev/davinci4 alone, that may be NPU 4 or NPU 0.
    beyond = [number for number in numbers if npus and number >= len(npus) and number not in npus]
    return _("there is no NPU {beyond}", beyond=beyond[0]) if beyond else ""
