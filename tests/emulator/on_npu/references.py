"""For the tests of operators that have a reference in plain torch."""

from __future__ import annotations

import torch


def leaf(*shape):
    return torch.randn(*shape).npu().requires_grad_()


def assert_equal(one, other):
    """The same values, of an operator that torch_npu has no derivative for."""
    torch.testing.assert_close(one.detach(), other.detach())


def assert_same(one, other, *inputs):
    """The same values, and the same derivatives by the inputs."""
    torch.testing.assert_close(one, other)
    weights = torch.randn_like(one)
    first = torch.autograd.grad(one, inputs, weights, retain_graph=True)
    second = torch.autograd.grad(other, inputs, weights, retain_graph=True)
    torch.testing.assert_close(first, second)
