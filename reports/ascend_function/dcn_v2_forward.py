"""Deformable convolution with a mask, as the extension of DCNv2 has it."""

# npumigrate: skip-file

import torch

from ._bilinear import bilinear


def dcn_v2_forward(
    input,
    weight,
    bias,
    offset,
    mask,
    kernel_h,
    kernel_w,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    deformable_group,
):
    """The convolution of what the offsets (y before x) sample, times the mask."""
    batch, channels, height, width = input.shape
    rows, columns = offset.shape[2:]
    points = kernel_h * kernel_w
    groups = batch * deformable_group
    place = {"dtype": offset.dtype, "device": offset.device}
    y = (torch.arange(rows, **place) * stride_h - pad_h)[:, None]
    x = torch.arange(columns, **place) * stride_w - pad_w
    y = y + (torch.arange(kernel_h, **place) * dilation_h).repeat_interleave(kernel_w)[:, None, None]
    x = x + (torch.arange(kernel_w, **place) * dilation_w).repeat(kernel_h)[:, None, None]
    moved = offset.reshape(groups, points, 2, rows, columns)
    sampled = bilinear(
        input.reshape(groups, channels // deformable_group, height, width),
        (y + moved[:, :, 0]).flatten(1),
        (x + moved[:, :, 1]).flatten(1),
        True,
    )
    sampled = sampled * mask.reshape(groups, 1, -1)
    found = torch.matmul(weight.flatten(1), sampled.reshape(batch, channels * points, rows * columns))
    return found.reshape(batch, -1, rows, columns) + bias.view(1, -1, 1, 1)
