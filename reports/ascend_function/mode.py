"""torch.mode and Tensor.mode."""

# npumigrate: skip-file

import torch


def mode(input, dim=-1, keepdim=False):
    """The most frequent values along a dimension, the smallest of several, and a place of each."""
    if input.ndim == 0:
        values, places = mode(input.reshape(1), 0)
        return torch.return_types.mode((values.reshape(()), places.reshape(())))
    along = input.transpose(dim, -1)
    ordered, order = torch.sort(along.detach(), -1)
    # How many of the same stand in a row up to each: the longest row, and of several the first.
    size = ordered.shape[-1]
    place = torch.arange(size, device=input.device).expand(ordered.shape)
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    group = starts.long().cumsum(-1) - 1
    counts = torch.zeros_like(group).scatter_add(-1, group, torch.ones_like(group))
    most = counts.argmax(-1, keepdim=True)
    last = counts.cumsum(-1).gather(-1, most) - 1
    index = order.gather(-1, last.to(place.dtype))
    values = along.gather(-1, index)
    both = (values.transpose(dim, -1), index.transpose(dim, -1))
    if not keepdim:
        both = tuple(each.squeeze(dim) for each in both)
    return torch.return_types.mode(both)
