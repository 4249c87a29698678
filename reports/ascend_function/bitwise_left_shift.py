"""torch.bitwise_left_shift by powers of two."""

# npumigrate: skip-file

import torch


def bitwise_left_shift(input, other):
    """``input`` times 2 to the power of ``other``, cut to the dtype."""
    dtype = torch.result_type(input, other)
    size = torch.iinfo(dtype).bits
    number, steps = _tensors(input, other, dtype)
    inside = (steps >= 0) & (steps < size)
    power = _two(torch.where(inside, steps, torch.zeros_like(steps)), size)
    return torch.where(inside, number * power, torch.zeros_like(number)).to(dtype)


def _tensors(input, other, dtype):
    device = input.device if torch.is_tensor(input) else other.device
    both = (each if torch.is_tensor(each) else torch.tensor(each, device=device) for each in (input, other))
    return torch.broadcast_tensors(*(each.to(dtype) for each in both))


def _two(steps, size):
    """2 to the power of each, by its binary digits: powers of integers go by way of floats elsewhere."""
    power = torch.ones_like(steps)
    for digit in range(size.bit_length() - 1):
        has = (steps // 2**digit) % 2 == 1
        power = torch.where(has, power * 2 ** (2**digit), power)
    return power
