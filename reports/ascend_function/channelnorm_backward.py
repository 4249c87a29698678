"""The gradient of the norm over the channels."""

# npumigrate: skip-file


def channelnorm_backward(input1, output, gradOutput, gradInput1, norm_deg):
    """``gradInput1`` gets it."""
    gradInput1.copy_(gradOutput * input1 / (output + 1e-9))
    return 1
