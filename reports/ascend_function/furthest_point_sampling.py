"""Furthest point sampling."""

# npumigrate: skip-file

from ._sampled import between, sampled


def furthest_point_sampling(points, nsamples):
    """The places of the points, which begin with the first; what is near the origin is left out."""
    near_origin = points.square().sum(-1) <= 1e-3
    far = points.new_full(points.shape[:2], 1e10)
    return sampled(between(points), far, nsamples, near_origin)
