"""torch.copysign."""

# npumigrate: skip-file

import torch


def copysign(input, other):
    """The sizes of ``input`` with the signs of ``other``."""
    if not torch.is_tensor(other):
        other = torch.tensor(float(other), dtype=torch.get_default_dtype(), device=input.device)
        dtype = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    else:
        dtype = torch.result_type(input, other)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    value = input.to(dtype)
    negative = torch.signbit(other)
    flip = negative != torch.signbit(value)
    sign = torch.where(flip, -1.0, 1.0).to(dtype)
    # As torch's, the derivative is 0 where the input is 0.
    return torch.where(value == 0, torch.where(negative, -0.0, 0.0).to(dtype), value * sign)
