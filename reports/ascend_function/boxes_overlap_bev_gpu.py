"""The areas that boxes share, seen from above."""

# npumigrate: skip-file

from ._rotated import of_all, overlaps


def boxes_overlap_bev_gpu(boxes_a, boxes_b, ans_overlap):
    """``ans_overlap`` gets those of each box with each other."""
    ans_overlap.copy_(of_all(overlaps, boxes_a, boxes_b).view(ans_overlap.shape))
    return 1
