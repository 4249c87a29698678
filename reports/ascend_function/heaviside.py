"""torch.heaviside."""

# npumigrate: skip-file

import torch


def heaviside(input, values):
    """0 below zero, 1 above, ``values`` at zero."""
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    one, zero = torch.ones_like(input), torch.zeros_like(input)
    return torch.where(input == 0, values, torch.where(input > 0, one, zero))
