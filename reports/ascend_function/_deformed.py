"""Deformable convolution with a mask."""

# npumigrate: skip-file

import torch

from ._bilinear import bilinear


def deformed(input, weight, offset, mask, stride, pad, dilation, group, deformable_group):
    """The convolution of what the offsets (y before x) sample, times the mask, without a bias."""
    high, wide = weight.shape[2:]
    batch, channels, height, width = input.shape
    rows, columns = offset.shape[2:]
    points = high * wide
    groups = batch * deformable_group
    place = {"dtype": offset.dtype, "device": offset.device}
    y = (torch.arange(rows, **place) * stride[0] - pad[0])[:, None]
    x = torch.arange(columns, **place) * stride[1] - pad[1]
    y = y + (torch.arange(high, **place) * dilation[0]).repeat_interleave(wide)[:, None, None]
    x = x + (torch.arange(wide, **place) * dilation[1]).repeat(high)[:, None, None]
    moved = offset.reshape(groups, points, 2, rows, columns)
    sampled = bilinear(
        input.reshape(groups, channels // deformable_group, height, width),
        (y + moved[:, :, 0]).flatten(1),
        (x + moved[:, :, 1]).flatten(1),
        True,
    )
    sampled = sampled * mask.reshape(groups, 1, -1)
    sampled = sampled.reshape(batch, group, -1, rows * columns)
    found = torch.matmul(weight.reshape(group, weight.shape[0] // group, -1), sampled)
    return found.reshape(batch, -1, rows, columns)
