"""What follows for names that no document lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.api_support import support
from migrator.api_support.env_vars import of_npu
from migrator.api_support.verdicts import compose, executed, of_area, read
from migrator.api_support.versions import resolve
from tests.api_support.wheel_files import torch_wheel
from tools.releases.archive import Archive
from tools.releases.operator_lists import read_natives

NOW, OLD = resolve("2.13"), resolve("2.1")


def test_operators_that_were_seen() -> None:
    svd, inverse = executed("torch.linalg.svd", NOW), executed("torch.linalg.inv", NOW)
    assert svd is not None
    assert (svd.status, svd.operators, svd.lacking) == ("supported", ("_linalg_svd",), ())
    assert inverse is not None
    assert (inverse.status, inverse.lacking, inverse.certain) == (
        "fallback",
        ("linalg_inv_ex.inverse",),
        True,
    )


def test_a_source_is_likely_only() -> None:
    normal, nms = read("torch.distributions.Normal.sample", NOW), compose("torchvision.ops.nms", NOW)
    assert normal is not None
    assert (normal.status, normal.certain) == ("supported", False)
    assert "normal" in normal.operators
    assert nms is not None
    assert (nms.status, nms.lacking) == ("fallback", ("torchvision::nms",))


def test_aliases_and_inherited_members_lead_to_their_definition() -> None:
    assert compose("torch.amp.GradScaler", NOW) == compose("torch.GradScaler", NOW) is not None
    assert compose("torch.optim.lr_scheduler.StepLR.state_dict", NOW) is not None


def test_other_devices() -> None:
    found = of_area("torch.xpu.streams.Stream")
    assert found is not None
    assert found.status == "unsupported"
    assert of_area("torch.nn.Linear") is None
    assert compose("torch.no_such_name", NOW) is None


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("add.Tensor", "kernel"),
        ("linalg_inv_ex", "fallback"),  # made from linalg_inv_ex.inverse, which has a kernel on the CPU
        ("linalg_inv", "composite"),
        ("no_such_operator", ""),
    ],
)
def test_what_becomes_of_an_overload(operator: str, kind: str) -> None:
    assert support.overload_registered(operator, NOW) == kind


def test_the_list_in_a_wheel_of_torch(tmp_path: Path) -> None:
    listed = """
- func: built(Tensor self) -> Tensor
- func: named(Tensor self) -> Tensor
  dispatch:
    CompositeExplicitAutograd: named
  autogen: named.out
- func: plain(Tensor self) -> Tensor
  structured_delegate: plain.out
- func: plain.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch: {"CPU, CUDA": plain_out}
- func: cuda_only(Tensor self) -> Tensor
  dispatch: {CUDA: cuda_only}
"""
    wheel = torch_wheel(tmp_path, "2.15.0", **{"torchgen/packaged/ATen/native/native_functions.yaml": listed})
    assert read_natives(Archive(wheel)) == {
        "built": "composite",
        "named": "composite",
        "named.out": "composite",
        "plain": "plain.out",
        "plain.out": "cpu",
        "cuda_only": "none",
    }


def test_variables_of_an_npu() -> None:
    found = of_npu("HCCL_EXEC_TIMEOUT")
    assert found is not None
    assert found.default == "1836"
    assert of_npu("NCCL_ALGO") is None
