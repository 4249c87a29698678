"""torch.special.entr."""

# npumigrate: skip-file

import torch

from ._floats import computed_in


class _Entr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        inside = torch.where(input > 0, input, torch.ones_like(input))
        found = torch.where(input > 0, -input * inside.log(), torch.zeros_like(input))
        found = torch.where(input < 0, torch.full_like(input, float("-inf")), found)
        return torch.where(input.isnan(), input, found)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient * (1 + ctx.saved_tensors[0].log())


def entr(input):
    """``-x log(x)``; 0 at 0, minus infinity below."""
    value, dtype = computed_in(input)
    return _Entr.apply(value).to(dtype)
