from __future__ import annotations

import pytest
import torch
import torch_npu
from torch import nn


def test_the_machine_is_as_asked_for():
    assert torch.npu.device_count() == 4
    assert torch.npu.get_device_name() == "Ascend910B2"
    assert torch.npu.mem_get_info()[1] == 2 << 30
    assert not torch.cuda.is_available()


def test_it_is_the_real_torch_npu():
    assert torch_npu.__file__.endswith("torch_npu/__init__.py")
    assert torch.accelerator.current_accelerator().type == "npu"
    with pytest.raises(RuntimeError, match="ERR00100 PTA call acl api failed"):
        torch.ones(1, device="npu:4")


@pytest.mark.parametrize(("one", "other"), [("cpu", "npu"), ("npu:0", "npu:1")])
def test_tensors_of_two_devices_do_not_mix(one, other):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2, device=one) + torch.ones(2, device=other)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        nn.Linear(2, 2).to(one)(torch.ones(1, 2, device=other))


def test_a_number_may_come_from_the_host_but_not_from_another_npu():
    assert (torch.ones(2, device="npu") + torch.tensor(1.0)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="npu:0") + torch.ones((), device="npu:1")


def test_a_copy_to_another_npu_shares_no_memory():
    one = torch.zeros(3, device="npu:0")
    other = one.to("npu:1")
    other.fill_(1)
    assert one.tolist() == [0, 0, 0]
    assert other.device.index == 1


def test_memory_runs_out_for_each_device_alone():
    gigabyte = torch.empty(1 << 30, dtype=torch.uint8, device="npu:0")
    with pytest.raises(torch.OutOfMemoryError, match="NPU out of memory"):
        torch.empty((1 << 30) + (1 << 29), dtype=torch.uint8, device="npu:0")
    torch.empty((1 << 30) + (1 << 29), dtype=torch.uint8, device="npu:1")
    # torch_npu adds some bytes to each block.
    assert 0 <= torch.npu.memory_allocated(0) - gigabyte.nbytes < 1024
    del gigabyte
    torch.npu.empty_cache()
    torch.empty((1 << 30) + (1 << 29), dtype=torch.uint8, device="npu:0")


def test_streams_and_events():
    stream = torch.npu.Stream()
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with torch.npu.stream(stream):
        start.record()
        product = torch.ones(300, 300, device="npu") @ torch.ones(300, 300, device="npu")
        end.record()
    torch.npu.current_stream().wait_stream(stream)
    assert end.query()
    assert stream.query()
    assert start.elapsed_time(end) > 0
    assert product[0, 0].item() == 300


def test_no_numpy_without_a_copy():
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        torch.ones(1, device="npu").numpy()
