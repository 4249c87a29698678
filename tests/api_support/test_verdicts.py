"""Documents and kernels together."""

from __future__ import annotations

import pytest

from migrator.api_support.verdicts import is_module, judge, resolve, tensor_methods
from migrator.api_support.versions import resolve as version

NOW = version("2.6")


@pytest.mark.parametrize(
    ("api", "status", "documents", "kernel"),
    [
        ("torch.nn.MaxPool2d", "unsupported", "unsupported", "composite"),  # torch builds it from max_pool2d
        ("torch.cdist", "unsupported", "unsupported", "kernel"),
        ("torch.heaviside", "unsupported", "unsupported", "none"),
        ("torch.copysign", "fallback", "partial", "none"),
        (
            "torch.igamma",
            "fallback",
            "unsupported",
            "none",
        ),  # as of torch 1.11
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
    verdict = resolve("torch.nn.Parameter.data", NOW)
    assert verdict is not None
    assert verdict.api == "torch.nn.parameter.Parameter"
    assert resolve("torch.nn.functional", NOW) is None  # a module
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
    now = version("2.7.1")
    everywhere, there = judge("torch.nn.Linear", now), judge("torch.nn.Linear", now, "950DT")
    assert (everywhere.status, there.status) == ("supported", "unsupported")
    assert there.by_hardware
    assert there.ticked == ("A2", "A3")
    assert judge("torch.nn.Linear", now, "A2").status == "supported"
    assert judge("torch.nn.Linear", now, "A1").status == "supported"  # nothing is ticked for A1
    assert judge("torch.nn.LSTM", version("2.6"), "950DT").ticked == ()  # a document without product lines
    assert judge("torch.cdist", version("2.6"), "950DT") == judge("torch.cdist", version("2.6"))


def test_what_differs_on_a_product_line() -> None:
    now = version("2.7.1")
    assert judge("torch.Tensor.sort", now).status == "supported"
    assert judge("torch.Tensor.sort", now, "950DT").status == "partial"
    assert judge("torch.Tensor.sort", now, "A3").status == "supported"


def test_dtypes_of_a_product_line() -> None:
    now = version("2.7.1")
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
