"""torch.nn.functional.huber_loss, by way of smooth_l1_loss."""

# npumigrate: skip-file

import torch


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """The loss of Huber: ``delta`` times the smooth one with ``beta=delta``."""
    if weight is None:
        return delta * torch.nn.functional.smooth_l1_loss(input, target, reduction=reduction, beta=delta)
    each = weight * huber_loss(input, target, "none", delta)
    if reduction == "mean":
        return each.sum() / weight.sum()
    return each.sum() if reduction == "sum" else each
