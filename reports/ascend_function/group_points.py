"""Groups of points by their places, as the extension of pointnet2_ops has it."""

# npumigrate: skip-file

from .gather_points import gather_points


def group_points(points, idx):
    """The columns of ``points`` (batch, channels, points) at ``idx`` (batch, groups, places)."""
    return gather_points(points, idx.flatten(1)).view(*points.shape[:2], *idx.shape[1:])
