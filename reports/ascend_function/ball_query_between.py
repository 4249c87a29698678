"""The points between two balls, in a tensor that is filled."""

# npumigrate: skip-file

from ._near import fill, first_places, squared


def ball_query_between(b, n, m, min_radius, max_radius, nsample, new_xyz, xyz, idx):
    """``idx`` gets the places, also of what is at a centre; where no point is there, it stays as it is."""
    distance = squared(new_xyz.reshape(b, m, 3), xyz.reshape(b, n, 3))
    inside = (distance >= min_radius * min_radius) & (distance < max_radius * max_radius)
    return fill(idx, first_places((distance == 0) | inside, nsample))
