"""torch.fmin."""

# npumigrate: skip-file

import torch


def fmin(input, other):
    """The smaller of two elements; where one of them is nan, the other one."""
    dtype = torch.result_type(input, other)
    one, two = torch.broadcast_tensors(input.to(dtype), other.to(dtype))
    if not dtype.is_floating_point:
        return torch.minimum(one, two)
    return torch.where((one <= two) | two.isnan(), one, two)
