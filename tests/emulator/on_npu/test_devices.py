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
    # torch_npu's own texts; that about the host ends with its number.
    number = (
        r"\. Expected NPU tensor, [^[]*\[ERROR\] .*RankID:-1\) ERR01002 OPS invalid type"
        if one == "cpu"
        else ""
    )
    with pytest.raises(RuntimeError, match=f"Expected all tensors to be on the same device{number}"):
        torch.ones(2, device=one) + torch.ones(2, device=other)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        nn.Linear(2, 2).to(one)(torch.ones(1, 2, device=other))


def test_a_number_may_come_from_the_host_but_not_from_another_npu():
    assert (torch.ones(2, device="npu") + torch.tensor(1.0)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device="npu:0") + torch.ones((), device="npu:1")


def test_no_numpy_without_a_copy():
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        torch.ones(1, device="npu").numpy()
