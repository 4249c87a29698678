"""The gradients of deformable convolution with a mask, in tensors that are filled."""

# npumigrate: skip-file

from ._deformed import deformed
from ._gradients import gradients


def modulated_deform_conv_backward(
    input,
    weight,
    bias,
    ones,
    offset,
    mask,
    columns,
    grad_input,
    grad_weight,
    grad_bias,
    grad_offset,
    grad_mask,
    grad_output,
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
    """Those of input, weight and bias are added to their tensors; those of offset and mask fill theirs."""
    sizes = ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))

    def forward(input, weight, offset, mask):
        return deformed(input, weight, offset, mask, *sizes, group, deformable_group)

    found = gradients(forward, (input, weight, offset, mask), grad_output)
    grad_input.add_(found[0])
    grad_weight.add_(found[1])
    grad_offset.copy_(found[2])
    grad_mask.copy_(found[3])
    if with_bias:
        grad_bias.add_(grad_output.sum((0, 2, 3)))
