"""The gradients of deformable convolution with a mask."""

# npumigrate: skip-file

from ._gradients import gradients
from .dcn_v2_forward import dcn_v2_forward


def dcn_v2_backward(
    input,
    weight,
    bias,
    offset,
    mask,
    grad_output,
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
    """The gradients of input, offset, mask, weight and bias."""
    sizes = (kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)

    def forward(input, offset, mask, weight, bias):
        return dcn_v2_forward(input, weight, bias, offset, mask, *sizes, deformable_group)

    return list(gradients(forward, (input, offset, mask, weight, bias), grad_output))
