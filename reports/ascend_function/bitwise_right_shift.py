"""torch.bitwise_right_shift by powers of two."""

# npumigrate: skip-file

import torch

from .bitwise_left_shift import _tensors, _two


def bitwise_right_shift(input, other):
    """``input`` divided by 2 to the power of ``other``, rounded down."""
    dtype = torch.result_type(input, other)
    size = torch.iinfo(dtype).bits
    number, steps = _tensors(input, other, dtype)
    inside = (steps >= 0) & (steps < size - (0 if dtype == torch.uint8 else 1))
    power = _two(torch.where(inside, steps, torch.zeros_like(steps)), size)
    lost = torch.where(number < 0, -torch.ones_like(number), torch.zeros_like(number))
    return torch.where(inside, torch.div(number, power, rounding_mode="floor"), lost).to(dtype)
