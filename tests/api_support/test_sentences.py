"""The verdict in one sentence."""

from __future__ import annotations

import pytest

from migrator.api_support.sentences import by_product_line, sentence
from migrator.api_support.versions import resolve

INV = "linalg_inv_ex.inverse"
NONE = "there is no kernel for it, and no fallback to the CPU"
KERNEL = "though torch_npu has a kernel"


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("torch.linalg.svd", "2.13", "Works."),
        ("torch.nn.Conv2d", "2.6", "Works. float64 and complex do not."),
        ("torch.linalg.inv", "2.6", f"Runs on the CPU: no kernel for {INV} in torch_npu 2.6 (slow)."),
        ("torch.cuda.Event", "2.6", "Use torch.npu.Event."),
        ("torch.cuda.nvtx.range_push", "2.6", "Raises: it has no NPU equivalent."),
        ("torch.compile", "1.11", "Not in torch 1.11: first in torch 2.0."),
        ("torch.fx", "2.6", "A module."),
        ("torch.sparse.mm", "2.13", f"It raises for a sparse tensor of an NPU: {NONE}."),
        ("torch.nn.AvgPool3d", "2.6", f"Unsupported according to the documents, {KERNEL}: try it."),
    ],
)  # fmt: skip
def test_sentences(name: str, version: str, said: str) -> None:
    assert sentence(name, resolve(version)) == said


def test_an_answer_from_a_source_says_so() -> None:
    assert sentence("torch.distributions.Normal", resolve("2.13")).startswith("Should work: ")
    assert sentence("torchvision.ops.nms", resolve("2.13")).startswith("Runs on the CPU: ")
    assert sentence("torch.no_such_name", resolve("2.13")).startswith("Unknown: ")


def test_product_lines_that_differ() -> None:
    assert ("950DT", "not supported") in list(by_product_line("torch.nn.Linear", resolve("2.7.1")))
    assert list(by_product_line("torch.cdist", resolve("2.6"))) == []
