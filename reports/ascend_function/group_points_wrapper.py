"""Groups of points, put into a tensor, as extensions of pointnet2 have it."""

# npumigrate: skip-file

from .gather_points import gather_points


def group_points_wrapper(b, c, n, npoints, nsample, points, idx, out):
    """``out`` gets the groups."""
    out.copy_(gather_points(points.reshape(b, c, n), idx.reshape(b, npoints * nsample)).view(out.shape))
    return 1
