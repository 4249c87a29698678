"""Functions of torch.npu and torch.accelerator: memory, streams, devices."""

from __future__ import annotations

import inspect
import warnings
from contextlib import nullcontext, suppress

import pytest
import torch
import torch_npu

GIB = 1 << 30
# They want libraries beside CANN, or a piece of hardware to test.
WANT_MORE = {"stress_detect", "super_kernel_scope_begin", "super_kernel_scope_end"}


def without_arguments(module):
    for name in sorted(set(dir(module)) - WANT_MORE):
        function = getattr(module, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        if all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            yield name, function


# What torch_npu itself refuses on such a chip, or without an option.
REFUSED = {"empty_virt_addr_cache", "get_npu_overflow_flag", "get_device_capability"}


@pytest.mark.parametrize("module", [torch.npu, torch_npu.npu.utils, torch.accelerator], ids=str)
def test_every_function_without_arguments(module):
    called = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in without_arguments(module):
            called.append(name)
            with suppress(RuntimeError) if name in REFUSED else nullcontext():
                function()
    assert len(called) > 10


def test_memory_is_counted():
    torch.npu.empty_cache()
    free, total = torch.npu.mem_get_info(0)
    before = torch.npu.memory_allocated(0)
    assert total == 2 * GIB == torch.npu.get_device_properties(0).total_memory
    data = torch.empty(GIB // 4, dtype=torch.uint8, device="npu:0")
    # torch_npu adds some bytes to each block.
    assert 0 <= torch.npu.memory_allocated(0) - before - GIB // 4 < 1024
    assert free - torch.npu.mem_get_info(0)[0] >= GIB // 4
    assert torch.npu.mem_get_info(1)[0] == torch.npu.mem_get_info(1)[1]  # the other device has its own
    assert torch.npu.max_memory_allocated(0) >= torch.npu.memory_allocated(0)
    assert torch.npu.memory_stats(0)["allocated_bytes.all.current"] == torch.npu.memory_allocated(0)
    assert "allocated" in torch.npu.memory_summary(0).lower()
    del data
    torch.npu.empty_cache()
    assert torch.npu.mem_get_info(0)[0] == free
    torch.npu.reset_peak_memory_stats(0)
    assert torch.npu.max_memory_allocated(0) == torch.npu.memory_allocated(0)


def test_out_of_memory_is_survived():
    kept = torch.ones(1000, device="npu:2")
    with pytest.raises(
        torch.OutOfMemoryError, match=r"NPU out of memory\. Tried to allocate 3\.00 GiB \(NPU 2"
    ):
        torch.empty(3 * GIB, dtype=torch.uint8, device="npu:2")
    with pytest.raises(torch.OutOfMemoryError):
        [torch.empty(GIB // 2, dtype=torch.uint8, device="npu:2") for _ in range(4)]
    assert kept.sum().item() == 1000
    torch.npu.set_per_process_memory_fraction(0.25, 3)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(GIB, dtype=torch.uint8, device="npu:3")
    torch.npu.set_per_process_memory_fraction(1.0, 3)
    torch.npu.set_device(0)  # torch_npu stays on the device whose share it sets


def test_streams_and_events():
    stream, start, end = torch.npu.Stream(), torch.npu.Event(True), torch.npu.Event(True)
    data = torch.ones(64, 64).npu()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream != torch.npu.default_stream()
        start.record()
        product = data @ data
        product.record_stream(stream)
        end.record()
    torch.npu.current_stream().wait_event(end)
    end.synchronize()
    assert end.query()
    assert stream.query()
    assert start.elapsed_time(end) >= 0
    assert torch.npu.current_stream() == torch.npu.default_stream()
    assert product[0, 0].item() == 64
    generic = torch.Event("npu")
    torch.accelerator.current_stream().record_event(generic)
    generic.synchronize()
    other = torch.npu.Stream(device="npu:1", priority=-1)
    assert other.device == torch.device("npu:1")


def test_the_current_device():
    assert torch.npu.current_device() == 0
    with torch.npu.device(2):
        assert torch.ones(1, device="npu").device.index == 2
        with torch.npu.device_of(torch.ones(1, device="npu:3")):
            assert torch.npu.current_device() == 3
    assert torch.npu.current_device() == 0
    torch.accelerator.set_device_index(1)
    assert torch.npu.current_device() == 1
    torch.npu.set_device("npu:0")
    with torch.device("npu:1"):
        assert torch.zeros(1).device == torch.nn.Linear(1, 1).weight.device == torch.device("npu:1")
    torch.set_default_device("npu")
    try:
        assert torch.rand(2).device.type == "npu"
    finally:
        torch.set_default_device(None)
    with pytest.raises(RuntimeError, match="Invalid device ID"):
        torch.npu.set_device(4)


def test_copies_are_independent():
    one = torch.zeros(4, device="npu:0")
    other = one.to("npu:1")
    back = other.cpu()
    one.fill_(1)
    other.fill_(2)
    assert (one.tolist(), other.tolist(), back.tolist()) == ([1] * 4, [2] * 4, [0] * 4)
    host = torch.zeros(4).pin_memory()
    copied = host.to("npu", non_blocking=True)
    host.fill_(3)
    assert copied.tolist() == [0] * 4
    one[:2].copy_(other[2:])
    assert one.tolist() == [2, 2, 1, 1]
    assert one.npu(0) is one


def test_casts_are_those_of_torch_npu():
    data = torch.ones(1, 2, 3, 3).npu()
    assert data.double().dtype == torch.float32  # with a warning, once
    with pytest.raises(RuntimeError, match=r"(?s)Only contiguous_format or preserve_format .*ERR01007 OPS"):
        data.to(memory_format=torch.channels_last)
    assert data.half().type() == "torch.npu.HalfTensor"
    assert data.is_npu
