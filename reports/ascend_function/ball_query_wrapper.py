"""The first points within a radius, put into a tensor, as extensions of pointnet2 have it."""

# npumigrate: skip-file

import torch

from .ball_query import ball_query


def ball_query_wrapper(b, n, m, radius, nsample, new_xyz, xyz, idx):
    """``idx`` gets the places; where no point is near, it stays as it is."""
    centres, points = new_xyz.reshape(b, m, 3), xyz.reshape(b, n, 3)
    found = ball_query(centres, points, radius, nsample)
    first = found[..., 0].long()[..., None].expand(b, m, 3)
    near = points.gather(1, first)
    reached = (near - centres).square().sum(-1, keepdim=True) < radius * radius
    idx.copy_(torch.where(reached.view(b, m, 1), found, idx.view(found.shape)).view(idx.shape))
    return 1
