"""The operators of torch_npu's own that have a reference, and their derivatives: against plain torch."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch.nn import functional

from tests.emulator.on_npu.references import assert_equal, assert_same, leaf


def test_norms():
    data, other, gamma = leaf(2, 3, 8), leaf(2, 3, 8), leaf(8)
    normed, scale = torch_npu.npu_rms_norm(data, gamma, epsilon=1e-5)
    assert_same(normed, functional.rms_norm(data, (8,), gamma, 1e-5), data, gamma)
    torch.testing.assert_close(scale, (data.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt())
    normed, _, added = torch_npu.npu_add_rms_norm(data, other, gamma, 1e-5)
    assert_same(added, data + other, data, other)
    assert_same(normed, functional.rms_norm(data + other, (8,), gamma, 1e-5), data, other, gamma)
    normed = torch_npu.npu_gemma_rms_norm(data, gamma, 1e-5)[0]
    assert_equal(normed, functional.rms_norm(data, (8,), 1 + gamma, 1e-5))
    assert_equal(torch_npu.npu_layer_norm_eval(data, [8], gamma), functional.layer_norm(data, [8], gamma))
    half = torch_npu.npu_rms_norm(data.half(), gamma.half())[0]
    assert half.dtype == torch.float16


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_gated_units(dim):
    data = leaf(2, 4, 6)
    left, right = data.chunk(2, dim)
    assert_same(torch_npu.npu_swiglu(data, dim=dim), functional.silu(left) * right, data)
    for approximate, name in ((0, "none"), (1, "tanh")):
        out, activated = torch_npu.npu_geglu(data, dim=dim, approximate=approximate)
        assert_same(out, left * functional.gelu(right, approximate=name), data)
        assert_same(activated, functional.gelu(right, approximate=name), data)
        out = torch_npu.npu_geglu(data, dim=dim, approximate=approximate, activate_left=True)[0]
        assert_same(out, functional.gelu(left, approximate=name) * right, data)


ACTIVATIONS = {
    "npu_mish": functional.mish,
    "npu_silu": functional.silu,
    "npu_gelu": functional.gelu,
    "npu_fast_gelu": lambda data: data * torch.sigmoid(1.702 * data),
    "fast_gelu": lambda data: data * torch.sigmoid(1.702 * data),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    data = leaf(3, 5)
    assert_same(getattr(torch_npu, name)(data), ACTIVATIONS[name](data), data)


def test_activations_in_place():
    data = torch.randn(4).npu()
    expected = functional.silu(data)
    assert torch_npu.npu_silu_(data) is data
    torch.testing.assert_close(data, expected)
    assert torch_npu.one_(data).tolist() == [1] * 4


def turned(data, mode):
    if mode == "half":
        return torch.cat((-data[..., 4:], data[..., :4]), -1)
    return torch.stack((-data[..., 1::2], data[..., ::2]), -1).flatten(-2)


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_rotary_embeddings(mode):
    data, cosine, sine = leaf(1, 2, 3, 8), leaf(1, 1, 3, 8), leaf(1, 1, 3, 8)
    out = torch_npu.npu_rotary_mul(data, cosine, sine, mode)
    assert_same(out, data * cosine + turned(data, mode) * sine, data, cosine, sine)
    query, key = torch.randn(1, 3, 2, 8).npu(), torch.randn(1, 3, 1, 8).npu()
    angle = torch.randn(1, 3, 1, 8).npu()
    expected = [data * angle.cos() + turned(data, mode) * angle.sin() for data in (query, key)]
    results = torch_npu.npu_apply_rotary_pos_emb(query, key, angle.cos(), angle.sin(), "BSND", mode)
    torch.testing.assert_close(list(results), expected)
    torch.testing.assert_close([query, key], expected)  # it works in place


def test_a_matrix_of_rotations():
    data, cosine, sine, rotate = leaf(1, 2, 3, 8), leaf(1, 1, 3, 8), leaf(1, 1, 3, 8), leaf(8, 8)
    out = torch_npu.npu_rotary_mul(data, cosine, sine, "interleave", rotate.detach())
    assert_same(out, data * cosine + data @ rotate.detach() * sine, data, cosine, sine)


def test_scaled_masked_softmax():
    data, mask = leaf(2, 3, 4, 4), torch.ones(4, 4, dtype=torch.bool).triu(1).npu()
    expected = (data * 0.5).masked_fill(mask, -10000.0).softmax(-1)
    assert_same(torch_npu.npu_scaled_masked_softmax(data, mask, 0.5), expected, data)
    assert_same(torch_npu.npu_scaled_masked_softmax(data, mask, 0.5, True), expected, data)


def test_cross_entropy():
    data, labels = leaf(3, 5), torch.eye(5)[:3].npu()
    expected = functional.cross_entropy(data, torch.arange(3).npu(), reduction="none")
    assert_same(torch_npu.npu_softmax_cross_entropy_with_logits(data, labels), expected, data)


def test_products():
    data, weight, bias = leaf(2, 3), leaf(4, 3), leaf(4)
    assert_same(
        torch_npu.npu_linear(data, weight, bias), functional.linear(data, weight, bias), data, weight, bias
    )
    one, other = leaf(2, 3, 4), leaf(2, 4, 5)
    assert_same(torch_npu.npu_bmmV2(one, other, []), one @ other, one, other)
    image, kernel, bias = leaf(1, 2, 5, 5), leaf(4, 1, 3, 3), leaf(4)
    expected = functional.conv2d(image, kernel, bias, 2, 1, 1, 2)
    given = (image, kernel, bias, [2, 2], [1, 1], [1, 1], 2)
    assert_same(torch_npu.npu_convolution(*given), expected, image, kernel, bias)
    assert_equal(torch_npu.npu_conv2d(*given), expected)


def test_shapes():
    data = leaf(2, 3, 4)
    assert_equal(torch_npu.npu_transpose(data, (2, 0, 1)), data.permute(2, 0, 1))
    assert_equal(torch_npu.npu_reshape(data, (6, 4)), data.reshape(6, 4))
    assert_equal(torch_npu.npu_broadcast(data[:, :1], (2, 5, 4)), data[:, :1].expand(2, 5, 4))
    assert_equal(torch_npu.npu_slice(data, [0, 1, 2], [2, 1, -1]), data[:, 1:2, 2:])
    for first in (True, False):
        expected = data.permute(1, 0, 2).reshape(3, 8) if first else data.reshape(3, 8).permute(1, 0)
        perm = (1, 0, 2) if first else (1, 0)
        assert_same(torch_npu.npu_confusion_transpose(data, perm, (3, 8), first), expected, data)


def test_casts():
    data = leaf(4, 4)
    for cast in (torch_npu.npu_format_cast(data, 29), torch_npu.npu_format_cast(data, data)):
        torch.testing.assert_close(cast, data)
    assert torch_npu.get_npu_format(data) == 2
    assert torch_npu.npu_format_cast_(torch.ones(2).npu(), 2).tolist() == [1, 1]
    narrow = torch_npu.npu_dtype_cast(data, torch.float16)
    assert narrow.dtype == torch.float16
    assert_same(narrow.float(), data.half().float(), data)


@pytest.mark.parametrize("name", ["Adadelta", "Adam", "AdamW", "RMSprop", "SGD"])
def test_fused_optimizers(name):
    torch.manual_seed(0)
    weight, bias, data = torch.randn(3, 3), torch.randn(3), torch.randn(4, 3)
    options = {"momentum": 0.9} if name == "SGD" else {}
    ends = []
    for device, kind in (
        ("cpu", getattr(torch.optim, name)),
        ("npu", getattr(torch_npu.optim, f"NpuFused{name}")),
    ):
        parameters = [tensor.clone().to(device).requires_grad_() for tensor in (weight, bias)]
        optimizer = kind(parameters, lr=0.1, weight_decay=0.01, **options)
        for _ in range(4):
            optimizer.zero_grad()
            functional.linear(data.to(device), *parameters).pow(2).sum().backward()
            if device == "npu":
                optimizer.clip_grad_norm_fused_(1e9)
            optimizer.step()
        ends.append([parameter.detach().cpu() for parameter in parameters])
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("name", ["BertAdam", "Lamb", "RMSpropTF"])
def test_fused_optimizers_that_torch_has_not(name):
    kind = getattr(torch_npu.optim, f"NpuFused{name}")
    weight = torch.ones(3, device="npu", requires_grad=True)
    optimizer = kind([weight], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        weight.pow(2).sum().backward()
        optimizer.step()
    assert 0 < weight.pow(2).sum().item() < 3


def test_an_operator_without_a_reference_says_so():
    half = torch.ones(1, 1, 1, 64, dtype=torch.float16).npu()
    with pytest.raises(NotImplementedError, match="the emulator lacks npu::npu_interleave_rope"):
        torch_npu.npu_interleave_rope(half, half, half)
