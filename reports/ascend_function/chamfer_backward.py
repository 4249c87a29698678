"""The gradients of the squared distances to the nearest points, added to tensors."""

# npumigrate: skip-file


def chamfer_backward(xyz1, xyz2, gradxyz1, gradxyz2, graddist1, graddist2, idx1, idx2):
    """``gradxyz1`` and ``gradxyz2`` get the gradients of the clouds."""
    one_way = (xyz1, xyz2, gradxyz1, gradxyz2, graddist1, idx1)
    other_way = (xyz2, xyz1, gradxyz2, gradxyz1, graddist2, idx2)
    for points, others, of_points, of_others, gradient, places in (one_way, other_way):
        places = places.long().unsqueeze(-1).expand(points.shape)
        part = 2 * gradient.unsqueeze(-1) * (points - others.gather(1, places))
        of_points.add_(part)
        of_others.scatter_add_(1, places, -part)
    return 1
