"""Known answers on CUDA names, and which names torch_npu has at a version."""

from __future__ import annotations

from typing import Optional

import pytest

from migrator.api_support import npu_names, tables, versions
from migrator.api_support.npu_names import Absence, absence, spelled
from migrator.api_support.versions import known, resolve


def npu(name: str, version: str = "2.13") -> str:
    found = npu_names.look_up(name, versions.resolve(version))
    assert found, f"{name} is not known"
    return found.npu


@pytest.mark.parametrize(
    ("cuda", "version", "expected"),
    [
        ("torch.cuda", "1.8", "torch.npu"),
        ("torch.cuda.synchronize", "1.8", "torch.npu.synchronize"),
        ("torch.cuda.is_available", "2.13", "torch.npu.is_available"),
        ("torch.cuda.FloatTensor", "2.1", "torch.npu.FloatTensor"),
        ("torch.cuda.CUDAGraph", "2.13", "torch.npu.NPUGraph"),
        ("torch.cuda.CUDAGraph", "1.11", ""),
        ("torch.cuda.CUDAGraph.replay", "2.13", "torch.npu.NPUGraph.replay"),
        ("torch.cuda.CUDAGraph.instantiate", "2.13", ""),
        ("torch.cuda.CUDAPluggableAllocator", "2.6", "torch.npu.NPUPluggableAllocator"),
        ("torch.cuda.set_stream", "1.8.1", ""),
        ("torch.cuda.set_stream", "2.1", "torch.npu.set_stream"),
        ("torch.cuda.OutOfMemoryError", "2.13", ""),
        ("torch.cuda.nvtx", "2.13", ""),
        ("torch.cuda.nvtx.range_push", "2.13", "torch.npu.mstx.range_push"),
        ("torch.cuda.nvtx.range_push", "2.8", ""),
        ("torch.cuda.nccl.version", "2.13", ""),
        ("torch.cuda.amp.autocast", "1.8.1", "torch.npu.amp.autocast"),
        ("torch.cuda.amp.GradScaler.scale", "2.13", "torch.npu.amp.GradScaler.scale"),
        ("torch.cuda.amp.custom_fwd", "1.8.1", ""),
        ("torch.cuda.Event.record", "2.13", "torch.npu.Event.record"),
        ("torch.cuda.Stream.priority_range", "2.13", ""),
        ("torch.cuda.streams.Stream", "2.13", "torch.npu.streams.Stream"),
        ("torch.cuda.memory.mem_get_info", "2.13", "torch.npu.mem_get_info"),
        ("torch.cuda.memory._record_memory_history", "2.13", "torch.npu.memory._record_memory_history"),
        ("torch.cuda._utils._get_device_index", "2.13", "torch.npu.utils._get_device_index"),
        ("torch.cuda._lazy_init", "2.1", "torch.npu._lazy_init"),
        ("torch.cuda.random.manual_seed", "1.11", "torch.npu.manual_seed"),
        # 2.8.0.post5 lacks names that 2.7.1.post11 has.
        ("torch.cuda.ExternalStream", "2.7.1", "torch.npu.ExternalStream"),
        ("torch.cuda.ExternalStream", "2.8.0", ""),
        ("torch.cuda.ExternalStream", "2.9.0", "torch.npu.ExternalStream"),
        ("torch.profiler.profile", "2.6", "torch_npu.profiler.profile"),
        ("torch.profiler.ProfilerActivity.CUDA", "2.6", "torch_npu.profiler.ProfilerActivity.NPU"),
        ("torch.profiler.record_function", "2.6", ""),
        ("torch.backends.cuda.cufft_plan_cache.size", "2.6", "torch.npu.backends.fft_plan_cache.size"),
        ("torch.distributed.ProcessGroupNCCL", "2.6", "torch_npu._C._distributed_c10d.ProcessGroupHCCL"),
    ],
)
def test_npu_name(cuda: str, version: str, expected: str) -> None:
    assert npu(cuda, version) == expected


@pytest.mark.parametrize(
    "name",
    [
        "torch.nn.Linear",
        "torch.cuda.no_such_name",
        "torch.cuda.memory.no_such_name",
        "numba.cuda",
        "cuda",
        "",
    ],
)
def test_unknown_names(name: str) -> None:
    assert npu_names.look_up(name, versions.newest()) is None


@pytest.mark.parametrize(
    ("name", "version", "npu_name", "advice"),
    [
        # A name in a module without an NPU equivalent follows the module.
        ("torch.cuda.nvtx.something_new", "2.14", "", "mstx"),
        ("torch.cuda.set_stream", "1.8.1", "", "torch 2.0.1"),
        # It behaves differently.
        ("torch.cuda.get_device_capability", "2.14", "torch.npu.get_device_capability", "NPU_DEVICE_CAP"),
    ],
)
def test_advice(name: str, version: str, npu_name: str, advice: str) -> None:
    found = npu_names.look_up(name, versions.resolve(version))
    assert found
    assert found.npu == npu_name
    assert advice in found.advice


@pytest.mark.parametrize(
    ("name", "unchanged"),
    [
        ("torch.backends.cudnn.benchmark", "no_effect"),
        ("torch.cuda.OutOfMemoryError", "works"),
        ("torch.cuda.nvtx.range_push", "raises"),
        ("torch.cuda.os", "works"),
    ],
)
def test_what_the_cuda_name_does_when_it_stays(name: str, unchanged: str) -> None:
    found = npu_names.look_up(name, versions.newest())
    assert found
    assert found.unchanged == unchanged


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("torch.npu.NPUGraph", "1.11", Absence(first="2.1.0")),
        ("torch.npu.NPUGraph", "2.1", None),
        ("torch_npu.npu_fusion_attention_v3", "2.6", Absence(first="2.7.1")),
        ("torch_npu.npu_multi_head_attention_v2", "2.13", Absence(last="2.5.1")),
        ("torch_npu.distributed.all_reduce", "1.11", None),
        ("torch_npu.distributed.all_reduce", "2.6", Absence(last="1.11.0")),
        ("torch.npu.no_such_name", "2.6", Absence()),
        ("torch_npu.npu_no_such_operator", "2.6", Absence()),
        ("torch.npu.memory.no_such_name", "2.13", Absence()),
        # Nobody looked for all names of a release without a wheel.
        ("torch.npu.no_such_name", "1.11", None),
        # Its lists do not have it, its sources speak of it.
        ("torch_npu.npu_rms_norm", "1.11", None),
        ("torch.npu._no_such_name", "2.6", None),
        ("torch.npu.amp.GradScaler", "2.6", None),
        ("torch.npu.matmul.allow_hf32", "2.6", None),
        ("torch_npu.contrib.module.SiLU", "1.11", None),
        ("torch_npu.nothing_that_is_listed", "2.6", None),
    ],
)
def test_absence(name: str, version: str, expected: Optional[Absence]) -> None:
    assert absence(spelled(name), resolve(version)) == expected


def test_what_stands_for_cuda_names_is_there() -> None:
    for cuda, first, last, _, npu, *_ in tables.rows("npu_names"):
        if npu.startswith("torch.npu.") and npu.count(".") == 2:
            for version in known():
                if tables.covers(first, last, version.tuple):
                    assert absence(spelled(npu), version) is None, (cuda, version.text)


def test_mentioned_names_are_of_releases_without_a_wheel() -> None:
    without = {version.text for version in known() if "wheel" not in version.evidence}
    rows = list(tables.rows("mentioned_names"))
    assert rows
    for name, mentioned in rows:
        assert npu_names.releases_with(name)
        assert without.issuperset(mentioned.split())
        assert not set(mentioned.split()).intersection(npu_names.releases_with(name))
