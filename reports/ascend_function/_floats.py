"""What dtype a function of floating point numbers computes in."""

# npumigrate: skip-file

import torch


def computed_in(input):
    """The input as it is computed with, and the dtype of the result: halves are computed in float32."""
    if not input.is_floating_point():
        return input.to(torch.get_default_dtype()), torch.get_default_dtype()
    if input.dtype in (torch.float16, torch.bfloat16):
        return input.float(), input.dtype
    return input, input.dtype
