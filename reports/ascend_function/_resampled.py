"""An image at the places to which a flow leads."""

# npumigrate: skip-file

import torch


def resampled(image, flow, bilinear):
    """The image at each pixel plus the flow (x before y); beyond its border it is as at the border."""
    height, width = image.shape[2:]
    place = {"dtype": flow.dtype, "device": flow.device}
    x = flow[:, 0] + torch.arange(flow.shape[3], **place)
    y = flow[:, 1] + torch.arange(flow.shape[2], **place)[:, None]
    if not bilinear:
        x, y = (x + 0.5).floor(), (y + 0.5).floor()
    grid = torch.stack(((2 * x + 1) / width - 1, (2 * y + 1) / height - 1), -1)
    mode = "bilinear" if bilinear else "nearest"
    return torch.nn.functional.grid_sample(image, grid, mode=mode, padding_mode="border", align_corners=False)
