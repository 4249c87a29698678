"""Deformable convolution with a mask, as the extension of DCNv2 has it."""

# npumigrate: skip-file

from ._deformed import deformed


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
    sizes = ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))
    return deformed(input, weight, offset, mask, *sizes, 1, deformable_group) + bias.view(1, -1, 1, 1)
