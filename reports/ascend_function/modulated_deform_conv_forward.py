"""Deformable convolution with a mask, as extensions of mmcv and BasicSR have it."""

# npumigrate: skip-file

from ._deformed import deformed


def modulated_deform_conv_forward(
    input,
    weight,
    bias,
    ones,
    offset,
    mask,
    output,
    columns,
    kernel_h,
    kernel_w,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    group,
    deformable_group,
    with_bias,
):
    """``output`` gets the convolution of what the offsets (y before x) sample, times the mask."""
    sizes = ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))
    found = deformed(input, weight, offset, mask, *sizes, group, deformable_group)
    output.copy_((found + bias.view(1, -1, 1, 1) if with_bias else found).view(output.shape))
