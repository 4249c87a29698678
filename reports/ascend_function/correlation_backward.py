"""The gradients of the correlation of two maps of features."""

# npumigrate: skip-file

from ._correlation import correlation
from ._gradients import gradients


def correlation_backward(
    input1,
    input2,
    rInput1,
    rInput2,
    gradOutput,
    gradInput1,
    gradInput2,
    pad_size,
    kernel_size,
    max_displacement,
    stride1,
    stride2,
    corr_type_multiply,
):
    """``gradInput1`` and ``gradInput2`` get the gradients, and the size that they need."""

    def forward(one, other):
        return correlation(one, other, pad_size, kernel_size, max_displacement, stride1, stride2)

    found = gradients(forward, (input1, input2), gradOutput)
    for goal, each in zip((gradInput1, gradInput2), found):
        goal.resize_(each.shape).copy_(each)
    return 1
