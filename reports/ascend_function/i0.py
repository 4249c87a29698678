"""torch.i0: the modified function of Bessel of order 0."""

# npumigrate: skip-file

import torch

from ._bessel import scaled
from ._floats import computed_in


class _I0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        size = input.abs()
        return scaled(0, size) * size.exp()

    @staticmethod
    def backward(ctx, gradient):
        (input,) = ctx.saved_tensors
        size = input.abs()
        return gradient * scaled(1, size) * size.exp() * input.sign()


def i0(input):
    """The values for each element; its derivative is computed, that one's is not exact."""
    value, dtype = computed_in(input)
    return _I0.apply(value).to(dtype)
