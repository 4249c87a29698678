"""torch.nn.functional.rms_norm, written out."""

# npumigrate: skip-file

import torch


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """The input divided by the root of the mean of its squares over the last dimensions."""
    dims = tuple(range(-len(normalized_shape), 0))
    dtype = input.dtype
    value = input.float() if dtype in (torch.float16, torch.bfloat16) else input
    eps = torch.finfo(dtype).eps if eps is None else eps
    found = (value * torch.rsqrt(value.pow(2).mean(dims, keepdim=True) + eps)).to(dtype)
    return found if weight is None else found * weight
