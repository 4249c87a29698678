"""The gradient of points that were pooled into a grid."""

# npumigrate: skip-file

from ._cells import cells


def bev_pool_backward(_out_grad, _geom_feats, _interval_lengths, _interval_starts, b, d, h, w):
    """The gradient of each point is that of its cell."""
    return _out_grad.reshape(b * d * h * w, -1).index_select(0, cells(_geom_feats, d, h, w))
