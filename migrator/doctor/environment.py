"""Faults of the environment: CANN's variables and libraries, shared memory, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.doctor.cann import set_env
from migrator.doctor.fault import Fault, fault
from migrator.doctor.machine import DRIVER, Machine

_SHARED_MEMORY = 1024  # MiB; a container has 64 unless it is given more
_OPEN_FILES = 1024  # the usual limit of a login


def environment_faults(machine: Machine) -> Iterator[Fault]:
    """CANN's environment: without it torch_npu cannot be imported."""
    home = machine.variables.get("ASCEND_HOME_PATH", "")
    script = set_env(machine)
    if not home:
        yield fault("set-env", file=script) if script else fault("set-env-missing")
        return
    if not machine.exists(home):
        yield fault("home-path", path=home)
    elif not _has_library(machine, machine.library_folders(), "libhccl.so"):
        yield fault("hccl-missing")


def driver_faults(machine: Machine) -> Iterator[Fault]:
    """The driver's library, which CANN loads."""
    if machine.emulated is None:
        below = [f"{DRIVER}/lib64{folder}" for folder in ("", "/driver", "/common")]
        if not _has_library(machine, [*machine.library_folders(), *below], "libascend_hal.so"):
            yield fault("driver-missing")


def limit_faults(machine: Machine) -> Iterator[Fault]:
    """What training with many workers and ranks uses up."""
    for line in machine.text("/proc/mounts").splitlines():
        _, place, _, options, *_ = [*line.split(), "", "", "", ""]
        size = re.search(r"(?:^|,)size=(\d+)([kmg]?)", options)
        if place == "/dev/shm" and size:  # nosec B108 # it is looked at
            mebibytes = int(size[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[size[2]] >> 20
            if mebibytes < _SHARED_MEMORY:
                yield fault("shared-memory", size=mebibytes)
            break
    limit = re.search(r"^Max open files\s+(\d+)", machine.text("/proc/self/limits"), re.MULTILINE)
    if limit and int(limit[1]) <= _OPEN_FILES:
        yield fault("open-files", limit=limit[1])


def _has_library(machine: Machine, folders: list[str], name: str) -> bool:
    return any(machine.exists(f"{folder}/{name}") for folder in folders)
