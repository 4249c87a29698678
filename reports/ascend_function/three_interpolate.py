"""The sum of three weighted points, as the extension of pointnet2_ops has it."""

# npumigrate: skip-file

from .group_points import group_points


def three_interpolate(points, idx, weight):
    """Of ``points`` (batch, channels, points) those at ``idx`` (batch, places, 3), by their weights."""
    return (group_points(points, idx) * weight.unsqueeze(1)).sum(-1)
