"""The cells of a grid seen from above."""

# npumigrate: skip-file


def cells(places, d, h, w):
    """The numbers of the cells of points, which have their place in h, w and d, and their batch."""
    y, x, z, batch = places.long().unbind(1)
    return ((batch * d + z) * h + y) * w + x
