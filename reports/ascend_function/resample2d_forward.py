"""An image at the places to which a flow leads, as the extension of FlowNet2 has it."""

# npumigrate: skip-file

from ._resampled import resampled


def resample2d_forward(input1, input2, output, kernel_size, bilinear=True):
    """``output`` gets the image."""
    _check(kernel_size)
    output.copy_(resampled(input1, input2, bilinear))
    return 1


def _check(kernel_size):
    if kernel_size != 1:
        raise NotImplementedError("resample2d on NPUs: kernel_size has to be 1")
