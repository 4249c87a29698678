"""What is said of names as people write them."""

from __future__ import annotations

import pytest

from migrator.api_support import answer, difference, env_vars, versions
from migrator.api_support.support import limit_words


def look_up(asked: str) -> answer.Answer:
    found = answer.look_up(asked)
    assert found, asked
    return found


@pytest.mark.parametrize(
    ("asked", "name", "kind"),
    [
        ("torch.cdist", "torch.cdist", "api"),
        ("torch.cdist()", "torch.cdist", "api"),
        ("Tensor.mode", "torch.Tensor.mode", "api"),
        ("torch.Tensor.mode", "torch.Tensor.mode", "api"),
        ("nn.Linear", "torch.nn.Linear", "api"),
        ("F.relu", "torch.nn.functional.relu", "api"),
        ("dist.all_reduce", "torch.distributed.all_reduce", "api"),
        ("cuda.synchronize", "torch.cuda.synchronize", "cuda"),
        ("torch.cuda.Event.record", "torch.cuda.Event.record", "cuda"),
        ("torch_npu.npu_rms_norm", "torch_npu.npu_rms_norm", "own"),
        ("npu_rms_norm", "torch_npu.npu_rms_norm", "own"),
        ("torch.ops.npu.npu_rms_norm", "torch_npu.npu_rms_norm", "own"),
        ("torch.npu.synchronize", "torch.npu.synchronize", "npu"),
        ("torch_npu.npu.synchronize", "torch_npu.npu.synchronize", "npu"),
        ("torch_npu.npu.mstx.annotate", "torch_npu.npu.mstx.annotate", "own"),
        ("aten::add.Tensor", "aten::add.Tensor", "operator"),
        ("torch.ops.aten.heaviside", "torch.ops.aten.heaviside", "operator"),
        ("NCCL_DEBUG", "NCCL_DEBUG", "environment"),
        ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "environment"),
    ],
)
def test_names(asked: str, name: str, kind: str) -> None:
    found = look_up(asked)
    assert (found.name, found.kind) == (name, kind)


@pytest.mark.parametrize("asked", ["", "torch.no_such_api", "aten::no_such_op", "numpy.add", "torch.", "*"])
def test_unknown_names(asked: str) -> None:
    assert answer.look_up(asked) is None


def test_a_range_per_fact() -> None:
    found = look_up("torch.cdist")
    assert [(row.first, row.last, row.status) for row in found.documents][:4] == [
        ("1.8.1", "1.11.0", "partial"),
        ("2.1.0", "2.1.0", "unsupported"),
        ("2.6.0", "2.6.0", "unsupported"),
        ("2.7.1", "2.7.1", "partial"),
    ]
    assert found.documents[-1].last == "2.13.0"
    assert [(row.kind, row.overloads) for row in found.registered] == [("kernel", ("cdist",))]


def test_what_is_registered_by_release() -> None:
    found = [(row.first, row.last, row.kind) for row in look_up("Tensor.mode").registered]
    assert found[0] == ("", "1.11.0", "kernel")
    assert found[-1][1:] == ("", "fallback")
    assert [row.kind for row in look_up("aten::sparse_mask").registered][-1] == "none"
    assert [row.kind for row in look_up("aten::atleast_1d").registered][-1] == "composite"


def test_an_alias_has_the_documents_of_both_spellings() -> None:
    found = look_up("nn.Parameter")
    assert found.alias_of == "torch.nn.parameter.Parameter"
    assert (found.documents[0].first, found.documents[-1].last) == ("1.8.1", "2.13.0")


def test_what_suits_an_npu_is_named_where_documents_do() -> None:
    assert "torch_npu.contrib.SiLU" in look_up("torch.nn.SiLU").affine
    assert look_up("torch.nn.functional.rms_norm").perhaps == ("torch_npu.npu_rms_norm",)
    assert look_up("torch.npu.set_device").stands_for == ("torch.cuda.set_device",)
    assert look_up("ASCEND_RT_VISIBLE_DEVICES").stands_for == ("CUDA_VISIBLE_DEVICES",)


def test_at_a_version() -> None:
    def known(name: str, version: str, *keys: str) -> list[object]:
        found = answer.at_version(look_up(name), versions.resolve(version))
        return [found[key] for key in keys]

    here = known("torch.cdist", "2.4", "status", "neighbour", "registered")
    assert here == ["unsupported", "2.1.0 and 2.6.0", "kernel"]
    assert known("torch.cdist", "2.14", "status", "neighbour") == ["partial", "2.13.0"]
    name, advice = known("torch.cuda.ExternalStream", "2.8", "npu_name", "advice")
    assert name == ""
    assert "2.9.0" in str(advice)


def test_patterns() -> None:
    assert answer.matching("torch.cuda.nvtx.*") == [
        f"torch.cuda.nvtx.{name}"
        for name in ("mark", "range", "range_end", "range_pop", "range_push", "range_start")
    ]
    assert "torch.cuda.nvtx._nvtx" in answer.matching("torch.cuda.nvtx._*")
    assert answer.matching("Tensor.mo?e") == ["torch.Tensor.mode"]
    assert "NCCL_DEBUG" in answer.matching("NCCL_*")
    assert answer.matching("torch.no_such.*") == []


@pytest.mark.parametrize("step", [24, pytest.param(1, marks=pytest.mark.thorough)])  # each name takes 0.7 ms
def test_every_name_has_an_answer(step: int) -> None:
    assert all(answer.look_up(name) for name in answer.matching("*")[::step])


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("torch.cuda.sychronize", "torch.cuda.synchronize"),
        ("torch.cuda.range_push", "torch.cuda.nvtx.range_push"),
        ("Tensor.mde", "torch.Tensor.mode"),
        ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("torch.nn.linear", "torch.nn.Linear"),
    ],
)
def test_near_misses(asked: str, meant: str) -> None:
    assert answer.nearest(asked)[0] == meant


def test_limits_in_words() -> None:
    assert limit_words(["dtype_full", "param:p", "param:q", "no_backward"]) == [
        "limited arguments: p, q (see the document)",
        "has no backward pass",
        "no limit: all twelve basic dtypes",
    ]


def test_what_changed_between_versions() -> None:
    changes = difference.between(*difference.pair(("2.13", "2.12")))
    by_name = {change.name: change for change in changes}
    gone = by_name["torch.cuda.MemPoolContext"]
    assert (gone.about, gone.before, gone.after) == ("name", "torch.npu.MemPoolContext", "")
    assert (by_name["zeros.names"].about, by_name["zeros.names"].before) == ("kernel", "kernel")
    assert by_name["torch.Tensor.flatten"].after == "supported"
    assert by_name["torch.Tensor.flatten"].certain


def test_changes_between_editions_are_not_certain() -> None:
    changes = difference.between(*difference.pair(("2.6", "2.9")))
    assert not any(change.certain for change in changes if change.about == "document")
    assert difference.caveats(*difference.pair(("1.11", "2.2")))


def test_a_version_with_itself() -> None:
    with pytest.raises(ValueError, match=r"both are torch 2\.6\.0"):
        difference.pair(("2.6", "2.6.0"))


@pytest.mark.parametrize(
    ("name", "npu", "same_values"),
    [
        ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", False),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_NPU_MEMORY_CACHING", True),
        ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", True),
        ("NCCL_BUFFSIZE", "HCCL_BUFFSIZE", False),
        ("NCCL_DEBUG", "", False),
        ("TORCH_CUDA_ARCH_LIST", "", False),
    ],
)
def test_variables_of_cuda(name: str, npu: str, same_values: bool) -> None:
    found = env_vars.look_up(name)
    assert found
    assert (found.npu, found.same_values) == (npu, same_values)
    assert found.npu or found.advice
    assert env_vars.look_up("HOME") is None
