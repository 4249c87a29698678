"""Known answers on CUDA names."""

from __future__ import annotations

import pytest

from migrator.api_support import npu_names, versions


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
        (
            "torch.backends.cuda.cufft_plan_cache.max_size",
            "2.6",
            "torch.npu.backends.fft_plan_cache.max_size",
        ),
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


def test_a_name_in_a_module_without_npu_form_follows_the_module() -> None:
    found = npu_names.look_up("torch.cuda.nvtx.something_new", versions.newest())
    assert found
    assert not found.npu
    assert "mstx" in found.advice


def test_a_name_that_came_later_says_when() -> None:
    found = npu_names.look_up("torch.cuda.set_stream", versions.resolve("1.8.1"))
    assert found
    assert "torch 2.0.1" in found.advice


def test_what_the_cuda_name_does_when_it_stays() -> None:
    newest = versions.newest()
    stays = {
        "torch.backends.cudnn.benchmark": "no_effect",
        "torch.cuda.OutOfMemoryError": "works",
        "torch.cuda.nvtx.range_push": "raises",
        "torch.cuda.os": "works",
    }
    for name, unchanged in stays.items():
        found = npu_names.look_up(name, newest)
        assert found
        assert found.unchanged == unchanged, name


def test_an_npu_name_that_behaves_differently_says_so() -> None:
    found = npu_names.look_up("torch.cuda.get_device_capability", versions.newest())
    assert found
    assert found.npu == "torch.npu.get_device_capability"
    assert "TORCH_NPU_DEVICE_CAPABILITY" in found.advice
