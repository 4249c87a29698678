"""torch.hypot, without overflow in between."""

# npumigrate: skip-file

import torch


def hypot(input, other):
    """The root of the sum of the squares."""
    input, other = torch.broadcast_tensors(input, other)
    dtype = torch.result_type(input, other)
    one, two = input.to(dtype).abs(), other.to(dtype).abs()
    large, small = torch.maximum(one, two), torch.minimum(one, two)
    whole = (large == 0) | large.isinf()
    ratio = small / torch.where(whole, torch.ones_like(large), large)
    found = torch.where(whole, torch.ones_like(large), large) * (1 + ratio * ratio).sqrt()
    return torch.where(whole, large, found)
