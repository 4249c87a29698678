"""The gradients of multi-scale deformable attention."""

# npumigrate: skip-file

from ._gradients import gradients
from .ms_deform_attn_forward import ms_deform_attn_forward


def ms_deform_attn_backward(
    value, spatial_shapes, level_start_index, sampling_loc, attn_weight, grad_output, im2col_step
):
    """The gradients of the values, the places and the weights."""

    def forward(value, sampling_loc, attn_weight):
        return ms_deform_attn_forward(
            value, spatial_shapes, level_start_index, sampling_loc, attn_weight, im2col_step
        )

    return list(gradients(forward, (value, sampling_loc, attn_weight), grad_output))
