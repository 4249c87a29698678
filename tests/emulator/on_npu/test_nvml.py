"""The module that answers what programs ask NVML, on NPUs."""

from __future__ import annotations

import importlib.util
import math
import os

import pytest
import torch
import torch_npu  # noqa: F401

from migrator.data_folders import data_folder


@pytest.fixture
def nvml():
    """The module, as a program imports it, after its start."""
    path = data_folder("reports") / "modules" / "ascend_nvml.py"
    spec = importlib.util.spec_from_file_location("ascend_nvml", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.nvmlInit()
    return module


def test_it_answers_what_torch_says(nvml):
    assert nvml.nvmlDeviceGetCount() == torch.npu.device_count()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    name = nvml.nvmlDeviceGetName(handle)
    assert name == name.decode("utf-8") == torch.npu.get_device_name(0)
    kept = torch.ones(1 << 20, device="npu")
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert memory.used + memory.free == memory.total
    assert memory.used >= kept.nbytes
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    assert 0 <= rates.gpu <= 100
    assert math.isnan(rates.memory)


def test_cpus_are_those_of_the_process(nvml):
    words = nvml.nvmlDeviceGetCpuAffinity(nvml.nvmlDeviceGetHandleByIndex(0), 16)
    cores = {i for i in range(64 * len(words)) if words[i // 64] >> i % 64 & 1}
    assert cores == os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    nvml.nvmlDeviceSetCpuAffinity(0)


def test_what_is_not_there_raises_an_error_of_nvml(nvml):
    with pytest.raises(nvml.NVMLError) as caught:
        nvml.nvmlDeviceGetHandleByIndex(torch.npu.device_count())
    assert caught.value.value == nvml.NVML_ERROR_INVALID_ARGUMENT
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlSystemGetDriverVersion()
