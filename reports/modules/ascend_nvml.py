"""Made by npumigrate: what programs ask NVIDIA's NVML (pynvml), answered for the NPUs that torch sees.

A handle is the number of an NPU. Processes may run on the CPUs on which this one may: NVML gives the CPUs
near a GPU. What torch_npu does not know raises NVMLError_NotSupported, as NVML does for some GPUs.
"""

# npumigrate: skip-file

import math
import os
from typing import NamedTuple

import torch
import torch_npu  # noqa: F401

NVML_SUCCESS = 0
NVML_ERROR_UNINITIALIZED = 1
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_DRIVER_NOT_LOADED = 9
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_UNKNOWN = 999

_VERSION = "/usr/local/Ascend/driver/version.info"
_BITS = 64


class NVMLError(Exception):
    """An error, by its number."""

    number = NVML_ERROR_UNKNOWN

    def __init__(self, value=None):
        self.value = self.number if value is None else value
        super().__init__(self.value)


class NVMLError_Uninitialized(NVMLError):
    number = NVML_ERROR_UNINITIALIZED


class NVMLError_InvalidArgument(NVMLError):
    number = NVML_ERROR_INVALID_ARGUMENT


class NVMLError_NotSupported(NVMLError):
    number = NVML_ERROR_NOT_SUPPORTED


class NVMLError_DriverNotLoaded(NVMLError):
    number = NVML_ERROR_DRIVER_NOT_LOADED


class NVMLError_LibraryNotFound(NVMLError):
    number = NVML_ERROR_LIBRARY_NOT_FOUND


class _Text(str):
    """A string that may be decoded: older releases of pynvml give bytes."""

    def decode(self, *_):
        return str(self)


class _Memory(NamedTuple):
    """The memory of an NPU, in bytes."""

    total: int
    free: int
    used: int


class _Rates(NamedTuple):
    """How busy an NPU is, in percent; how busy its memory is, is not known."""

    gpu: int
    memory: float = math.nan


def _asked(name, handle):
    """What torch.npu says of an NPU."""
    function = getattr(torch.npu, name, None)
    if function is None:
        raise NVMLError_NotSupported
    return function(nvmlDeviceGetIndex(handle))


def nvmlInit():
    pass


def nvmlInitWithFlags(flags):
    pass


def nvmlShutdown():
    pass


def nvmlSystemGetDriverVersion():
    try:
        with open(_VERSION, encoding="utf-8") as file:
            lines = dict(line.strip().partition("=")[::2] for line in file)
    except OSError:
        raise NVMLError_NotSupported from None
    return _Text(lines.get("Version", ""))


def nvmlDeviceGetCount():
    return torch.npu.device_count()


def nvmlDeviceGetHandleByIndex(index):
    return nvmlDeviceGetIndex(index)


def nvmlDeviceGetIndex(handle):
    if not 0 <= int(handle) < torch.npu.device_count():
        raise NVMLError_InvalidArgument
    return int(handle)


def nvmlDeviceGetName(handle):
    return _Text(_asked("get_device_name", handle))


def nvmlDeviceGetUUID(handle):
    return _Text(f"NPU-{nvmlDeviceGetIndex(handle)}")


def nvmlDeviceGetMemoryInfo(handle, version=None):
    free, total = _asked("mem_get_info", handle)
    return _Memory(total, free, total - free)


def nvmlDeviceGetUtilizationRates(handle):
    return _Rates(_asked("utilization", handle))


def nvmlDeviceGetCpuAffinity(handle, cpuSetSize):
    nvmlDeviceGetIndex(handle)
    words = [0] * cpuSetSize
    for core in os.sched_getaffinity(0):
        if core // _BITS < cpuSetSize:
            words[core // _BITS] |= 1 << core % _BITS
    return words


def nvmlDeviceSetCpuAffinity(handle):
    nvmlDeviceGetIndex(handle)


def nvmlDeviceClearCpuAffinity(handle):
    nvmlDeviceGetIndex(handle)
