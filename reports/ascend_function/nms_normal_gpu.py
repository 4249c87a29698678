"""Non-maximum suppression of boxes without their heading, in the order of their scores."""

# npumigrate: skip-file

import torch

from ._rotated import keep_first, of_all


def nms_normal_gpu(boxes, keep, nms_overlap_thresh):
    """``keep`` gets the boxes that are kept; returns their number."""

    def shares(one, other):
        low = torch.maximum(one[..., :2] - one[..., 3:5] / 2, other[..., :2] - other[..., 3:5] / 2)
        high = torch.minimum(one[..., :2] + one[..., 3:5] / 2, other[..., :2] + other[..., 3:5] / 2)
        shared = (high - low).clamp(min=0).prod(-1)
        return shared / (one[..., 3:5].prod(-1) + other[..., 3:5].prod(-1) - shared).clamp(min=1e-8)

    return keep_first(of_all(shares, boxes, boxes) > nms_overlap_thresh, keep)
