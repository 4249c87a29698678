"""torch.special.xlog1py."""

# npumigrate: skip-file

import torch


class _Xlog1py(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, other):
        ctx.save_for_backward(input, other)
        none = (input == 0) & ~other.isnan()
        return torch.where(none, torch.zeros_like(input), input * torch.log1p(other))

    @staticmethod
    def backward(ctx, gradient):
        input, other = ctx.saved_tensors
        none = (input == 0) & (other <= -1)
        of_input = torch.where(none, torch.zeros_like(other), torch.log1p(other))
        return gradient * of_input, gradient * input / (other + 1)


def xlog1py(input, other):
    """``input * log1p(other)``: 0 where input is 0, nan where other is."""
    tensor = input if torch.is_tensor(input) else other
    input, other = (
        each if torch.is_tensor(each) else torch.tensor(each, device=tensor.device) for each in (input, other)
    )
    dtype = torch.result_type(input, other)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    input, other = torch.broadcast_tensors(input.to(dtype), other.to(dtype))
    return _Xlog1py.apply(input, other)
