"""An image moved by a flow."""

# npumigrate: skip-file

import torch

from ._bilinear import bilinear


def resampled(image, flow, smooth):
    """The image at each pixel plus the flow (x before y); beyond its border it is as at the border."""
    place = {"dtype": flow.dtype, "device": flow.device}
    x = flow[:, 0] + torch.arange(flow.shape[3], **place)
    y = flow[:, 1] + torch.arange(flow.shape[2], **place)[:, None]
    if not smooth:
        x, y = (x + 0.5).floor(), (y + 0.5).floor()
    return bilinear(image, y.flatten(1), x.flatten(1), False).reshape(*image.shape[:2], *flow.shape[2:])
