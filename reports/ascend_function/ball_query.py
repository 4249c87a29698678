"""The points in a ball."""

# npumigrate: skip-file

from ._near import first_places, squared


def ball_query(new_xyz, xyz, radius, nsample):
    """Places of points around each of ``new_xyz``; the first one fills up, and 0 where there is none."""
    return first_places(squared(new_xyz, xyz) < radius * radius, nsample).clamp(min=0)
