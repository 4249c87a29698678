"""torch.digamma."""

# npumigrate: skip-file

from ._polygamma import polygamma


def digamma(input):
    """The derivative of the logarithm of the gamma function."""
    return polygamma(0, input)
