"""The gradients of an image at the places to which a flow leads."""

# npumigrate: skip-file

from ._gradients import gradients
from ._resampled import resampled


def resample2d_backward(input1, input2, gradOutput, gradInput1, gradInput2, kernel_size, bilinear=True):
    """The gradient of the image is added to its tensor; both are bilinear ones, as the CUDA kernels'."""

    def forward(image, flow):
        return resampled(image, flow, True)

    of_image, of_flow = gradients(forward, (input1, input2), gradOutput)
    gradInput1.add_(of_image)
    gradInput2.copy_(of_flow)
    return 1
