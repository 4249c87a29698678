"""Non-maximum suppression of boxes with a heading, which stand in the order of their scores."""

# npumigrate: skip-file

from ._rotated import keep_first, of_all, shares


def nms_gpu(boxes, keep, nms_overlap_thresh):
    """``keep`` gets the boxes that are kept; returns their number."""
    return keep_first(of_all(shares, boxes, boxes) > nms_overlap_thresh, keep)
