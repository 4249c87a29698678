"""Rotated boxes and the choice of boxes."""

from __future__ import annotations

import math

import torch
import torch_npu


def test_the_overlap_of_rotated_squares():
    """A square on its corner shares a regular octagon with the same square on its side."""
    square = torch.tensor([[[50.0, 50, 2, 2, 0]]])
    others = torch.tensor([[[50.0, 50, 2, 2, 45], [51, 50, 2, 2, 90], [60, 60, 2, 2, 10]]])
    octagon = 8 * (math.sqrt(2) - 1)
    shared = torch_npu.npu_rotated_overlaps(square.npu(), others.npu()).cpu()
    torch.testing.assert_close(shared, torch.tensor([[[octagon, 2.0, 0.0]]]))
    union = torch_npu.npu_rotated_iou(square.npu(), others.npu()).cpu()
    torch.testing.assert_close(union, torch.tensor([[[octagon / (8 - octagon), 2 / 6, 0.0]]]))


def test_the_best_of_rotated_boxes_are_kept():
    boxes = torch.tensor([[50.0, 50, 20, 10, 30], [51, 50, 20, 10, 30], [90, 50, 20, 10, 30]])
    kept, count = torch_npu.npu_nms_rotated(boxes.npu(), torch.tensor([0.5, 0.9, 0.1]).npu(), 0.3)
    assert kept.tolist() == [1, 2]
    assert count.tolist() == [2]


def test_rotated_boxes_are_decoded_from_what_they_are_encoded_to():
    anchors = torch.tensor([[[40.0], [10.0], [90.0], [30.0], [60.0]]]).npu()
    truth = torch.tensor([[[38.0], [5.0], [80.0], [29.0], [50.0]]]).npu()
    ones = torch.ones(5).npu()
    deltas = torch_npu.npu_rotated_box_encode(anchors, truth, ones)
    torch.testing.assert_close(torch_npu.npu_rotated_box_decode(anchors, deltas, ones), truth)


def test_boxes_are_chosen_until_there_are_enough():
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]]).npu()
    scores = torch.tensor([0.6, 0.8, 0.9, 0.1]).npu()
    limits = (torch.tensor(0.5).npu(), torch.tensor(0.3).npu())
    kept, count = torch_npu.npu_nms_v4(boxes, scores, 3, *limits)
    assert kept.tolist() == [2, 1, 0]
    assert count.item() == 2
    rows = torch.cat((boxes, scores[:, None]), 1)
    assert torch_npu.npu_nms_with_mask(rows, 0.5)[2].tolist() == [0, 1, 1, 1]
