"""Points by their places, as the extension of pointnet2_ops has it."""

# npumigrate: skip-file


def gather_points(points, idx):
    """The columns of ``points`` (batch, channels, points) at ``idx`` (batch, places)."""
    places = idx.long().unsqueeze(1).expand(-1, points.shape[1], -1)
    return points.gather(2, places)
