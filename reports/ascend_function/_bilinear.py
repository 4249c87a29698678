"""Bilinear sampling as kernels for deformable convolutions and flows have it."""

# npumigrate: skip-file

import torch


def bilinear(image, y, x, zeros):
    """``image`` (batch, channels, height, width) at ``y`` and ``x`` (batch, places).

    What lies outside is zero, or as at the border. At whole positions the derivative is that towards the
    next pixel; grid_sample rounds its scaled positions, and gives that of either side.
    """
    batch, channels, height, width = image.shape
    pixels = image.permute(0, 2, 3, 1).reshape(-1, channels)
    first = torch.arange(batch, device=image.device)[:, None] * (height * width)
    top, left = y.detach().floor(), x.detach().floor()
    down, right = y - top, x - left
    found = 0
    for row, high in ((top, 1 - down), (top + 1, down)):
        for column, wide in ((left, 1 - right), (left + 1, right)):
            weight = high * wide
            if zeros:
                inside = (y > -1) & (x > -1) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
                weight = weight * inside.to(weight.dtype)
            place = row.clamp(0, height - 1).long() * width + column.clamp(0, width - 1).long() + first
            part = torch.index_select(pixels, 0, place.flatten()).view(*place.shape, channels)
            found = found + part * weight.unsqueeze(-1)
    return found.transpose(1, 2)
