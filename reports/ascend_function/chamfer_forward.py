"""The squared distances to the nearest points of another cloud, put into tensors."""

# npumigrate: skip-file


def chamfer_forward(xyz1, xyz2, dist1, dist2, idx1, idx2):
    """``dist1`` and ``idx1`` get those of the first cloud, ``dist2`` and ``idx2`` those of the second."""
    distance = 0
    for each in range(xyz1.shape[-1]):
        distance = distance + (xyz1[:, :, None, each] - xyz2[:, None, :, each]).square()
    for found, places, dim in ((dist1, idx1, 2), (dist2, idx2, 1)):
        nearest, place = distance.min(dim)
        found.copy_(nearest)
        places.copy_(place)
    return 1
