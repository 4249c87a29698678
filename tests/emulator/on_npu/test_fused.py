"""The operators of torch_npu's own that have a reference, and their derivatives: against plain torch."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch.nn import functional


def leaf(*shape):
    return torch.randn(*shape).npu().requires_grad_()


def assert_same(one, other, *inputs):
    """The same values, and the same derivatives by the inputs."""
    torch.testing.assert_close(one, other)
    weights = torch.randn_like(one)
    first = torch.autograd.grad(one, inputs, weights, retain_graph=True)
    second = torch.autograd.grad(other, inputs, weights)
    torch.testing.assert_close(first, second)


def test_rms_norm():
    data, gamma = leaf(2, 3, 8), leaf(8)
    normed = torch_npu.npu_rms_norm(data, gamma, epsilon=1e-5)[0]
    assert_same(normed, functional.rms_norm(data, (8,), gamma, 1e-5), data, gamma)


def test_swiglu():
    data = leaf(2, 8)
    assert_same(torch_npu.npu_swiglu(data), functional.silu(data[:, :4]) * data[:, 4:], data)


def test_rotary_mul():
    data, angle = leaf(1, 2, 3, 4), torch.randn(1, 1, 3, 4).npu()
    turned = torch.cat((-data[..., 2:], data[..., :2]), -1)
    assert_same(
        torch_npu.npu_rotary_mul(data, angle.cos(), angle.sin()),
        data * angle.cos() + turned * angle.sin(),
        data,
    )


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize("causal", [False, True])
def test_fusion_attention(layout, causal):
    query, key, value = (leaf(2, 3, 4, 5) for _ in range(3))  # batch, head, sequence, width
    to = {
        "BNSD": lambda data: data,
        "BSND": lambda data: data.transpose(1, 2),
        "BSH": lambda data: data.transpose(1, 2).flatten(2),
        "SBH": lambda data: data.permute(2, 0, 1, 3).flatten(2),
    }[layout]
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1).npu() if causal else None
    out = torch_npu.npu_fusion_attention(
        *(to(data) for data in (query, key, value)), 3, layout, atten_mask=mask, scale=5**-0.5
    )[0]
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    assert_same(out, to(expected), query, key, value)


def test_fusion_attention_of_sequences_in_a_row():
    query, key, value = (leaf(5, 2, 4) for _ in range(3))  # token, head, width
    out = torch_npu.npu_fusion_attention(
        query, key, value, 2, "TND", scale=0.5, actual_seq_qlen=[2, 5], actual_seq_kvlen=[2, 5]
    )[0]
    parts = [
        functional.scaled_dot_product_attention(*(data[cut].transpose(0, 1) for data in (query, key, value)))
        for cut in (slice(0, 2), slice(2, 5))
    ]
    assert_same(out, torch.cat([part.transpose(0, 1) for part in parts]), query, key, value)


def test_a_format_changes_no_value():
    data = leaf(4, 4)
    torch.testing.assert_close(torch_npu.npu_format_cast(data, 29), data)


def test_an_operator_without_a_reference_says_so():
    with pytest.raises(NotImplementedError, match="the emulator lacks npu::npu_deep_norm"):
        torch_npu.npu_deep_norm(
            *(torch.ones(2, 4).npu() for _ in range(2)), *(torch.ones(4).npu() for _ in range(2))
        )
