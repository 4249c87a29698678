"""Verdicts: documents and kernels together, what follows without a document, and the sentence on each."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.api_support import support, tables, verdicts, versions
from migrator.api_support.env_vars import of_npu
from migrator.api_support.verdicts import (
    basis,
    by_product_line,
    compose,
    executed,
    is_module,
    judge,
    of_area,
    sentence,
    tensor_methods,
)
from migrator.api_support.versions import known, resolve
from tests.api_support.wheel_files import torch_wheel
from tools.releases.archive import Archive
from tools.releases.coverage import coverage
from tools.releases.operator_lists import read_natives


def supported(api: str, version: str) -> support.Support:
    found = support.look_up(api, resolve(version))
    assert found, f"{api} is not known"
    return found


@pytest.mark.parametrize(
    ("api", "version", "status", "kernel", "neighbour"),
    [
        ("torch.abs", "2.13", "partial", "kernel", ""),
        ("torch.Tensor.to", "1.8.1", "supported", "kernel", ""),
        # One of the real changes: cdist gained support at 2.7.1.
        ("torch.cdist", "2.6.0", "unsupported", "kernel", ""),
        ("torch.cdist", "2.7.1", "partial", "kernel", ""),
        ("torch.cdist", "2.4.0", "unsupported", "kernel", "2.1.0 and 2.6.0"),
        ("torch.heaviside", "2.13", "unsupported", "none", ""),
        ("torch.nn.RNN", "2.13", "unsupported", "", ""),
        # Only excerpts of the 2.4 document are known, and this API is in one.
        ("torch.cuda.StreamContext", "2.4.0", "unsupported", "", ""),
        ("torch.fft.ihfft", "2.2.0", "unknown", "", "2.1.0 and 2.6.0"),
    ],
)
def test_status(api: str, version: str, status: str, kernel: str, neighbour: str) -> None:
    found = supported(api, version)
    assert (found.status, found.neighbour) == (status, neighbour)
    assert found.kernel == kernel or not kernel


def test_limits_are_words() -> None:
    found = supported("torch.cdist", "2.7.1")
    assert found.dtypes == ("bf16+fp16+fp32",)
    assert "param:compute_mode" in found.limits
    assert found.hardware == ("A2", "A3", "950DT")


@pytest.mark.parametrize(
    ("alias", "api"),
    [
        ("torch.nn.Parameter", "torch.nn.parameter.Parameter"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.modules.module.Module.to", "torch.nn.Module.to"),
    ],
)
def test_aliases(alias: str, api: str) -> None:
    assert supported(alias, "2.13") == supported(api, "2.13")


def test_unknown_api() -> None:
    assert support.look_up("torch.no_such_api", versions.newest()) is None
    assert support.look_up("", versions.newest()) is None


@pytest.mark.parametrize("version", [version.text for version in versions.known()])
def test_every_api_has_an_answer_at_every_version(version: str) -> None:
    resolved = resolve(version)
    apis = {line.partition(",")[0] for line in tables.lines("api_support")}
    assert all(support.look_up(api, resolved) for api in apis)


NOW = resolve("2.6")


@pytest.mark.parametrize(
    ("api", "status", "documents", "kernel"),
    [
        ("torch.nn.MaxPool2d", "unsupported", "unsupported", "composite"),  # torch builds it from max_pool2d
        ("torch.cdist", "unsupported", "unsupported", "kernel"),
        ("torch.heaviside", "unsupported", "unsupported", "none"),
        ("torch.copysign", "fallback", "partial", "none"),
        ("torch.igamma", "fallback", "unsupported", "none"),  # as of torch 1.11
        ("torch.Tensor.trace", "supported", "unsupported", "kernel"),  # as of torch 1.8
        ("torch.istft", "supported", "unsupported", "composite"),  # as of torch 1.11
        ("torch.nn.MultiheadAttention", "unsupported", "unsupported", "composite"),  # by its operators
        ("torch.func.jvp", "unsupported", "unsupported", "none"),  # one of its operators has no kernel
        ("torch.compiler.disable", "supported", "unsupported", "python"),
        ("torch.nn.Module.share_memory", "supported", "unsupported", "python"),
        ("torch._foreach_add_", "supported", "", "kernel"),  # in no document
        ("torch.no_such_thing", "unknown", "", ""),
    ],
)
def test_a_verdict_has_both_kinds_of_evidence(api: str, status: str, documents: str, kernel: str) -> None:
    verdict = judge(api, NOW)
    assert (verdict.status, verdict.documents, verdict.kernel) == (status, documents, kernel)


def test_names_lead_to_what_the_documents_call_them() -> None:
    verdict = verdicts.resolve("torch.nn.Parameter.data", NOW)
    assert verdict is not None
    assert verdict.api == "torch.nn.parameter.Parameter"
    assert verdicts.resolve("torch.nn.functional", NOW) is None  # a module
    assert is_module("torch.fft")
    assert is_module("torch")
    assert not is_module("torch.nn.Linear")
    assert not is_module("torch.fft.fft")


def test_wide_dtypes_are_refused_where_the_list_is_about_floats() -> None:
    eye, embedding = judge("torch.eye", NOW), judge("torch.nn.Embedding", NOW)
    assert eye.refuses("float64")
    assert eye.refuses("complex64")
    assert not eye.refuses("float16")
    assert not eye.refuses("bfloat16")  # a list says what was tried, and NPUs have it
    assert not embedding.refuses("float64")  # the list is about the indices


def test_methods_of_tensors() -> None:
    assert {"unique_consecutive", "mean", "T"} <= tensor_methods()
    assert "torch" not in tensor_methods()


def test_a_product_line_that_the_documents_leave_out() -> None:
    now = resolve("2.7.1")
    everywhere, there = judge("torch.nn.Linear", now), judge("torch.nn.Linear", now, "950DT")
    assert (everywhere.status, there.status) == ("supported", "unsupported")
    assert there.by_hardware
    assert there.ticked == ("A2", "A3")
    assert judge("torch.nn.Linear", now, "A2").status == "supported"
    assert judge("torch.nn.Linear", now, "A1").status == "supported"  # nothing is ticked for A1
    assert judge("torch.nn.LSTM", resolve("2.6"), "950DT").ticked == ()  # a document without product lines
    assert judge("torch.cdist", resolve("2.6"), "950DT") == judge("torch.cdist", resolve("2.6"))


def test_what_differs_on_a_product_line() -> None:
    now = resolve("2.7.1")
    assert judge("torch.Tensor.sort", now).status == "supported"
    assert judge("torch.Tensor.sort", now, "950DT").status == "partial"
    assert judge("torch.Tensor.sort", now, "A3").status == "supported"


def test_dtypes_of_a_product_line() -> None:
    now = resolve("2.7.1")
    assert judge("torch.concat", now, "950DT").refuses("complex64")
    assert not judge("torch.concat", now, "A2").refuses("complex64")
    assert not judge("torch.concat", now).refuses("complex64")
    assert judge("torch.Tensor.addcdiv_", now, "A1").refuses("bfloat16")  # listed for A2 and A3 only
    assert not judge("torch.Tensor.addcdiv_", now, "A2").refuses("bfloat16")
    assert judge("torch.Tensor.addcdiv_", now, "950DT").left_out == frozenset()  # nothing is listed for it


def test_what_the_documents_call_unsupported_may_run() -> None:
    assert judge("torch.nn.MaxPool2d", NOW).runs  # built from operators with kernels
    assert judge("torch.nn.utils.clip_grad_norm_", NOW).runs  # by its source
    assert not judge("torch.heaviside", NOW).runs
    assert not judge("torch.sparse_csr_tensor", NOW).runs


def test_a_limit_counts_where_users_meet_it() -> None:
    assert not judge("torch.nn.Conv2d", NOW).limited
    assert judge("torch.nn.LSTM", NOW).limited


LAST = resolve("2.13")


def test_operators_that_were_seen() -> None:
    svd, inverse = executed("torch.linalg.svd", LAST), executed("torch.linalg.inv", LAST)
    assert svd is not None
    assert (svd.status, svd.operators, svd.lacking) == ("supported", ("_linalg_svd",), ())
    assert inverse is not None
    assert (inverse.status, inverse.lacking) == ("fallback", ("linalg_inv_ex.inverse",))
    assert inverse.certain


def test_a_source_is_likely_only() -> None:
    normal, nms = (
        verdicts.read("torch.distributions.Normal.sample", LAST),
        compose("torchvision.ops.nms", LAST),
    )
    assert normal is not None
    assert (normal.status, normal.certain) == ("supported", False)
    assert "normal" in normal.operators
    assert nms is not None
    assert (nms.status, nms.lacking) == ("fallback", ("torchvision::nms",))


def test_aliases_and_inherited_members_lead_to_their_definition() -> None:
    assert compose("torch.amp.GradScaler", LAST) == compose("torch.GradScaler", LAST) is not None
    assert compose("torch.optim.lr_scheduler.StepLR.state_dict", LAST) is not None


def test_other_devices() -> None:
    found = of_area("torch.xpu.streams.Stream")
    assert found is not None
    assert found.status == "unsupported"
    assert of_area("torch.nn.Linear") is None
    assert compose("torch.no_such_name", LAST) is None


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
    assert support.overload_registered(operator, LAST) == kind


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


INV = "linalg_inv_ex.inverse"
NONE = "there is no kernel for it, and no fallback to the CPU"
KERNEL = "though torch_npu has a kernel"


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("torch.linalg.svd", "2.13", "Works."),
        ("torch.nn.Conv2d", "2.6", "Works. float64 and complex do not."),
        ("torch.linalg.inv", "2.6", f"Falls back to the CPU: no kernel for {INV} in torch_npu 2.6 (slow)."),
        ("torch.cuda.Event", "2.6", "Use torch.npu.Event."),
        ("torch.cuda.nvtx.range_push", "2.6", "Raises: it has no NPU equivalent."),
        ("torch.compile", "1.11", "Not in torch 1.11: first in torch 2.0."),
        ("torch.fx", "2.6", "A module."),
        ("torch.sparse.mm", "2.13", f"It raises for a sparse tensor of an NPU: {NONE}."),
        ("torch.nn.AvgPool3d", "2.6", f"Documented as unsupported, {KERNEL}: test it."),
    ],
)  # fmt: skip
def test_sentences(name: str, version: str, said: str) -> None:
    assert sentence(name, resolve(version)) == said


def test_an_answer_from_a_source_says_so() -> None:
    assert sentence("torch.distributions.Normal", resolve("2.13")).startswith("Should work: ")
    assert sentence("torchvision.ops.nms", resolve("2.13")).startswith("Falls back to the CPU: ")
    assert sentence("torch.no_such_name", resolve("2.13")).startswith("Unknown: ")


def test_product_lines_that_differ() -> None:
    assert ("950DT", "not supported") in list(by_product_line("torch.nn.Linear", resolve("2.7.1")))
    assert list(by_product_line("torch.cdist", resolve("2.6"))) == []


@pytest.mark.parametrize("version", [version.text for version in known()])
def test_nearly_every_name_has_an_answer(version: str) -> None:
    found = coverage(resolve(version), every=12)
    assert found.names > 500
    assert found.answered >= 0.98, found.unknown
    assert all(reason for _, reason in found.unknown)
    assert sum(found.verdicts.values()) == found.names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.cuda.Event", "names"),
        ("torch.nn.Linear", "documents"),
        ("torch.linalg.svd", "executed"),
        ("torch.distributions.Normal", "source"),
        ("torch.amp.GradScaler", "source"),  # an alias of torch.GradScaler
        ("torch.FunctionSchema", "core"),
        ("torch.fx", "value"),
        ("torch.xpu.is_available", "area"),
        ("torch.no_such_name", ""),
    ],
)
def test_what_an_answer_is_known_from(name: str, kind: str) -> None:
    assert basis(name, resolve("2.13")) == kind
