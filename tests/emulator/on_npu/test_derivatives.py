"""Derivatives that torch_npu has as operators: each gives what the backward pass of its operator gives."""

from __future__ import annotations

import pytest
import torch
import torch_npu


def data(*sizes):
    return torch.randn(*sizes).npu().requires_grad_()


def of_norm(name, *inputs):
    """Results behind the first of an operator, and the gradients of its inputs."""
    found = getattr(torch_npu, name)(*inputs)
    gradient = torch.randn(found[0].shape).npu()
    return gradient, found, torch.autograd.grad(found[0], inputs, gradient)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("npu_swiglu", ((3, 8),)),
        ("npu_fast_gelu", ((3, 8),)),
        ("npu_mish", ((3, 8),)),
        ("npu_rotary_mul", ((2, 3, 4, 8), (1, 3, 1, 8), (1, 3, 1, 8))),
    ],
)
def test_elementwise(name, inputs):
    given = [data(*sizes) for sizes in inputs]
    out = getattr(torch_npu, name)(*given)
    gradient = torch.randn(out.shape).npu()
    expected = torch.autograd.grad(out, given, gradient)
    plain = [each.detach() for each in given]
    found = getattr(torch_npu, f"{name}_backward")(gradient, *plain)
    for one, other in zip((found,) if isinstance(found, torch.Tensor) else found, expected):
        torch.testing.assert_close(one, other)


def test_silu_of_its_result():
    given = data(3, 8)
    out = torch_npu.npu_silu(given)
    (expected,) = torch.autograd.grad(out, given, torch.ones_like(out))
    found = torch_npu.npu_silu_backward(torch.ones_like(out), given.detach(), out.detach())
    torch.testing.assert_close(found, expected)


def test_norms():
    x, gamma = data(4, 6), data(6)
    gradient, (_, rstd), expected = of_norm("npu_rms_norm", x, gamma)
    found = torch_npu.npu_rms_norm_backward(gradient, x.detach(), gamma.detach(), rstd.detach())
    torch.testing.assert_close(tuple(found), expected)
    x1, x2, beta = data(4, 6), data(4, 6), data(6)
    gradient, found, expected = of_norm("npu_add_layer_norm", x1, x2, gamma, beta)
    mean, rstd = (each.detach() for each in found[1:3])
    arguments = (x1.detach(), x2.detach(), rstd, mean, gamma.detach(), None)
    for one, other in zip(torch_npu.npu_add_layer_norm_backward(gradient, *arguments), expected):
        torch.testing.assert_close(one, other)
    found = torch_npu.npu_deep_norm(x1, x2, beta, gamma, 0.3)
    mean, rstd, out = found
    gradient = torch.randn(out.shape).npu()
    expected = torch.autograd.grad(out, (x1, x2, beta, gamma), gradient)
    plain = (x1.detach(), x2.detach(), gamma.detach(), mean.detach(), rstd.detach(), 0.3)
    for one, other in zip(torch_npu.npu_deep_norm_backward(gradient, *plain), expected):
        torch.testing.assert_close(one, other)


def test_softmax_with_a_mask():
    x, mask = data(2, 2, 32, 32), (torch.rand(2, 1, 32, 32) > 0.5).npu()
    out = torch_npu.npu_scaled_masked_softmax(x, mask, 0.5, False)
    gradient = torch.randn(out.shape).npu()
    (expected,) = torch.autograd.grad(out, x, gradient)
    found = torch_npu.npu_scaled_masked_softmax_backward(gradient, out.detach(), mask, 0.5, False)
    torch.testing.assert_close(found, expected)


def test_the_largest_logits():
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0], [0.0, 0.0, 5.0, 1.0]]).npu()
    found = torch_npu.npu_top_k_top_p(logits, torch.tensor([0.9, 0.5]).npu(), torch.tensor([2, 3]).npu())
    none = float("-inf")
    assert found.tolist() == [[none, 3.0, 2.0, none], [none, none, 5.0, none]]
