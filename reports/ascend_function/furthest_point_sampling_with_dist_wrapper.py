"""Furthest point sampling by distances that are known."""

# npumigrate: skip-file

import torch

from ._sampled import sampled


def furthest_point_sampling_with_dist_wrapper(b, n, m, points, temp, idx):
    """``points`` are the distances between all, ``temp`` those to start from, ``idx`` gets the places."""
    batch = torch.arange(b, device=points.device)
    distances = points.reshape(b, n, n)
    idx.copy_(sampled(lambda chosen: distances[batch, chosen], temp, m).view(idx.shape))
    return 1
