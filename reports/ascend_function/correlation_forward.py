"""The correlation of two maps of features, as the extension of FlowNet2 has it."""

# npumigrate: skip-file

from ._correlation import correlation


def correlation_forward(
    input1,
    input2,
    rInput1,
    rInput2,
    output,
    pad_size,
    kernel_size,
    max_displacement,
    stride1,
    stride2,
    corr_type_multiply,
):
    """``output`` gets a channel for each displacement, and the size that it needs."""
    found = correlation(input1, input2, pad_size, kernel_size, max_displacement, stride1, stride2)
    output.resize_(found.shape).copy_(found)
    return 1
