"""Anchors, regions and the choice of boxes, as the references in op-plugin's tests define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator import boxes
from npumigrate_emulator.routing import refuse


def _anchor_flags(data: Tensor, featmap_size: list[int], stride: list[int], num_base_anchors: int) -> Tensor:
    """Mark the anchors of the cells that the boxes' centers are in."""
    height, width = featmap_size
    x = ((data[:, 0].float() + data[:, 2].float()) * 0.5 / stride[0]).floor().long()
    y = ((data[:, 1].float() + data[:, 3].float()) * 0.5 / stride[1]).floor().long()
    flags = torch.zeros(height * width, dtype=torch.uint8, device=data.device)
    cells = y * width + x
    flags[cells[(cells >= 0) & (cells < flags.numel())]] = 1
    return flags.repeat_interleave(num_base_anchors)


def _overlaps(one: Tensor, other: Tensor) -> Tensor:
    low, high = torch.maximum(one[:2], other[..., :2]), torch.minimum(one[2:4], other[..., 2:4])
    shared = (high - low).clamp(min=0).prod(-1)
    total = (one[2:4] - one[:2]).prod() + (other[..., 2:4] - other[..., :2]).prod(-1) - shared
    return shared / total


def _choose(data: Tensor, scores: Tensor, threshold: float, least: float, most: int) -> list[int]:
    """Greedily take the best box that overlaps no better one too much."""
    order = scores.argsort(descending=True, stable=True)
    order = order[scores[order] > least]
    kept: list[int] = []
    while order.numel() and len(kept) < most:
        kept.append(int(order[0]))
        rest = order[1:]
        order = rest[~(_overlaps(data[order[0]], data[rest]) > threshold)]
    return kept


def _nms_v4(
    data: Tensor,
    scores: Tensor,
    max_output_size: float,
    iou_threshold: Tensor,
    scores_threshold: Tensor,
    pad_to_max_output_size: bool = False,
) -> tuple[Tensor, Tensor]:
    most = int(max_output_size)
    kept = _choose(
        data.float().cpu(), scores.float().cpu(), float(iou_threshold), float(scores_threshold), most
    )
    indices = torch.zeros(most, dtype=torch.int32)
    indices[: len(kept)] = torch.tensor(kept, dtype=torch.int32)
    return indices.to(data.device), torch.tensor(len(kept), dtype=torch.int32, device=data.device)


def _nms_with_mask(data: Tensor, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes with a score in the fifth place: the mask says which are kept."""
    values = data.float().cpu()
    kept = _choose(values[:, :4], values[:, 4], float(iou_threshold), float("-inf"), len(values))
    mask = torch.zeros(len(values), dtype=torch.uint8)
    mask[kept] = 1
    numbers = torch.arange(len(values), dtype=torch.int32)
    return data.clone(), numbers.to(data.device), mask.to(data.device)


def _batch_nms(
    data: Tensor,
    scores: Tensor,
    score_threshold: float,
    iou_threshold: float,
    max_size_per_class: int,
    max_total_size: int,
    change_coordinate_frame: bool = False,
    transpose_box: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Choose in each class, then the best of all classes; what is left of the results is zero."""
    refuse(
        "npu_batch_nms", {"change_coordinate_frame": change_coordinate_frame, "transpose_box": transpose_box}
    )
    whole, values = data.float().cpu(), scores.float().cpu()
    count, classes = len(whole), values.shape[2]
    found = torch.zeros(count, max_total_size, 4)
    best, numbers = torch.zeros(count, max_total_size), torch.zeros(count, max_total_size)
    sizes = torch.zeros(count, dtype=torch.int32)
    for image in range(count):
        rows = []
        for number in range(classes):
            of_class = whole[image, :, number if whole.shape[2] > 1 else 0]
            scored = values[image, :, number]
            for index in _choose(of_class, scored, iou_threshold, score_threshold, max_size_per_class):
                rows.append((float(scored[index]), number, of_class[index]))
        rows.sort(key=lambda row: -row[0])
        sizes[image] = len(rows[:max_total_size])
        for place, (score, number, box) in enumerate(rows[:max_total_size]):
            found[image, place], best[image, place], numbers[image, place] = box, score, number
    to = {"device": data.device, "dtype": data.dtype}
    return found.to(**to), best.to(**to), numbers.to(**to), sizes.to(data.device)


def _centers(data: Tensor) -> tuple[Tensor, Tensor]:
    """Centers and sizes; the last row and column belong to a box."""
    return (data[:, :2] + data[:, 2:]) / 2, data[:, 2:] - data[:, :2] + 1


def _encode(data: Tensor, ground_truth_box: Tensor, *scaling: float) -> Tensor:
    """Computed in halves, whatever the dtype, and not divided but multiplied, as op-plugin's tests expect."""
    (centers, sizes), (centers2, sizes2) = _centers(data.half()), _centers(ground_truth_box.half())
    deltas = torch.cat(((centers2 - centers) / sizes, (sizes2 / sizes).log()), 1).half()
    means, factors = deltas.new_tensor(scaling[:4]), deltas.new_tensor([1 / each for each in scaling[4:]])
    return ((deltas - means) * factors).to(data.dtype)


def _decode(data: Tensor, deltas: Tensor, *others: Any) -> Tensor:
    scaling, max_shape, clip = others[:8], others[8], others[9]
    centers, sizes = _centers(data.float())
    whole = deltas.float() * deltas.new_tensor(scaling[4:]).float() + deltas.new_tensor(scaling[:4]).float()
    limit = abs(torch.tensor(clip).log().item())
    centers, sizes = centers + whole[:, :2] * sizes, sizes * whole[:, 2:].clamp(-limit, limit).exp()
    most = centers.new_tensor([max_shape[1] - 1, max_shape[0] - 1] * 2)
    corners = torch.cat((centers - sizes / 2 + 0.5, centers + sizes / 2 - 0.5), 1)
    return corners.clamp(min=0).minimum(most).to(data.dtype)


def _encode_for_yolo(
    data: Tensor, gt_bboxes: Tensor, stride: Tensor, performance_mode: bool = False
) -> Tensor:
    """As mmdetection's YOLOBBoxCoder."""
    anchors, truth = data.float(), gt_bboxes.float()
    apart = ((truth[:, :2] + truth[:, 2:]) - (anchors[:, :2] + anchors[:, 2:])) / 2
    centers = (apart / stride[:, None] + 0.5).clamp(1e-6, 1 - 1e-6)
    ratios = (truth[:, 2:] - truth[:, :2]) / (anchors[:, 2:] - anchors[:, :2])
    return torch.cat((centers, ratios.clamp(min=1e-6).log()), 1).to(data.dtype)


def _assign(
    data: Tensor,
    overlaps: Tensor,
    box_responsible_flags: Tensor,
    max_overlaps: Tensor,
    argmax_overlaps: Tensor,
    gt_max_overlaps: Tensor,
    gt_argmax_overlaps: Tensor,
    num_gts: int,
    pos_iou_thr: float,
    min_pos_iou: float,
    gt_max_assign_all: bool,
) -> Tensor:
    """Assign true boxes to the cells that are responsible, as mmdetection's GridAssigner does."""
    responsible = box_responsible_flags.bool()
    result = torch.where((max_overlaps > pos_iou_thr) & responsible, argmax_overlaps.to(data.dtype) + 1, data)
    for number in range(min(num_gts, overlaps.shape[0])):
        if gt_max_overlaps[number] > min_pos_iou:
            if gt_max_assign_all:
                result[(overlaps[number] == gt_max_overlaps[number]) & responsible] = number + 1
            elif responsible[gt_argmax_overlaps[number]]:
                result[gt_argmax_overlaps[number]] = number + 1
    return result


def _random_choice(data: Tensor, count: int = 256, seed: int = 0, seed2: int = 0) -> tuple[Tensor, Tensor]:
    """Draw positions of what is true, in order where all are taken."""
    places = data.nonzero()
    taken = places
    if len(places) > count:
        taken = places[torch.randperm(len(places), device=data.device)[:count]]
    result = torch.zeros(count, data.dim(), dtype=torch.int32, device=data.device)
    result[: len(taken)] = taken.int()
    return result, torch.arange(count, device=data.device) < len(taken)


def _roi_align_backward(
    data: Tensor,
    rois: Tensor,
    xdiff_shape: list[int],
    pooled_width: int,
    pooled_height: int,
    spatial_scale: float,
    sample_num: int,
    roi_end_mode: Optional[int] = None,
) -> Tensor:
    source = torch.zeros(xdiff_shape, dtype=data.dtype, device=data.device, requires_grad=True)
    with torch.enable_grad():
        out = boxes.roi_align(
            source, rois, spatial_scale, pooled_height, pooled_width, sample_num, roi_end_mode or 0
        )
        return torch.autograd.grad(out, source, data)[0]


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_anchor_response_flags": _anchor_flags,
    "npu_batch_nms": _batch_nms,
    "npu_bounding_box_decode": _decode,
    "npu_bounding_box_encode": _encode,
    "npu_grid_assign_positive": _assign,
    "npu_nms_v4": _nms_v4,
    "npu_nms_with_mask": _nms_with_mask,
    "npu_random_choice_with_mask": _random_choice,
    "npu_roi_alignbk": _roi_align_backward,
    "npu_yolo_boxes_encode": _encode_for_yolo,
}
