"""Pooling of points into a grid seen from above."""

# npumigrate: skip-file

from ._cells import cells


def bev_pool_forward(_x, _geom_feats, _interval_lengths, _interval_starts, b, d, h, w):
    """The sums of the points of a cell (b, d, h, w, channels)."""
    room = _x.new_zeros(b * d * h * w, _x.shape[1])
    return room.index_add(0, cells(_geom_feats, d, h, w), _x).view(b, d, h, w, -1)
