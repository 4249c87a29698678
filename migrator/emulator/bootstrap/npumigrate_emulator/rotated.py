"""Rotated boxes: their overlaps, and what is made of these. Angles are degrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_CLOSE = 1e-6


def _corners(boxes: Tensor, trans: bool) -> Tensor:
    """The four corners of boxes (centers and sizes; with trans two corners), counterclockwise."""
    if trans:
        centers, sizes = (boxes[..., :2] + boxes[..., 2:4]) / 2, boxes[..., 2:4] - boxes[..., :2]
    else:
        centers, sizes = boxes[..., :2], boxes[..., 2:4]
    angle = boxes[..., 4] * (math.pi / 180)
    signs = boxes.new_tensor([[1, 1], [-1, 1], [-1, -1], [1, -1]]) / 2
    x, y = (signs * sizes[..., None, :]).unbind(-1)
    cosine, sine = angle.cos()[..., None], angle.sin()[..., None]
    return torch.stack((x * cosine - y * sine, x * sine + y * cosine), -1) + centers[..., None, :]


def _cross(one: Tensor, other: Tensor) -> Tensor:
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def _inside(points: Tensor, corners: Tensor) -> Tensor:
    """Which points are in the boxes."""
    low, along, up = corners[..., :1, :], corners[..., 1:2, :], corners[..., 3:, :]
    first, second, to = along - low, up - low, points - low

    def between(side: Tensor) -> Tensor:
        share = (to * side).sum(-1) / (side * side).sum(-1).clamp(min=1e-12)
        return (share > -_CLOSE) & (share < 1 + _CLOSE)

    return between(first) & between(second)


def _shared(one: Tensor, other: Tensor) -> Tensor:
    """The areas that boxes have in common: the polygon of their crossings and inner corners."""
    start, stop = one[..., :, None, :], one.roll(-1, -2)[..., :, None, :]
    start2, stop2 = other[..., None, :, :], other.roll(-1, -2)[..., None, :, :]
    side, side2 = stop - start, stop2 - start2
    turn = _cross(side, side2)
    apart = torch.where(turn.abs() < 1e-12, torch.ones_like(turn), turn)
    at, at2 = _cross(start2 - start, side2) / apart, _cross(start2 - start, side) / apart
    crosses = (turn.abs() >= 1e-12) & (at >= 0) & (at <= 1) & (at2 >= 0) & (at2 <= 1)
    crossings = start + at[..., None] * side
    points = torch.cat((crossings.flatten(-3, -2), one.expand_as(other), other.expand_as(one)), -2)
    kept = torch.cat((crosses.flatten(-2), _inside(one, other), _inside(other, one)), -1)
    count = kept.sum(-1, keepdim=True)
    middle = (points * kept[..., None]).sum(-2, keepdim=True) / count.clamp(min=1)[..., None]
    around = points - middle
    angle = torch.atan2(around[..., 1], around[..., 0]).masked_fill(~kept, 1e3)
    order = angle.argsort(-1)
    ordered = around.gather(-2, order[..., None].expand_as(around))
    real = torch.arange(ordered.shape[-2], device=one.device) < count
    ordered = torch.where(real[..., None], ordered, ordered[..., :1, :])
    area = _cross(ordered, ordered.roll(-1, -2)).sum(-1).abs() / 2
    return torch.where(count[..., 0] > 2, area, 0)


def _overlaps(data: Tensor, query_boxes: Tensor, trans: bool = False) -> Tensor:
    one, other = _corners(data.double().cpu(), trans), _corners(query_boxes.double().cpu(), trans)
    shape = (*data.shape[:-1], query_boxes.shape[-2], 4, 2)
    shared = _shared(one[..., :, None, :, :].expand(shape), other[..., None, :, :, :].expand(shape))
    return shared.to(data.device, data.dtype)


def _iou(
    data: Tensor,
    query_boxes: Tensor,
    trans: bool = False,
    mode: int = 0,
    is_cross: bool = True,
    v_threshold: float = 0.0,
    e_threshold: float = 0.0,
) -> Tensor:
    """Overlaps over unions; with mode 1 over the first boxes' areas."""

    def area(boxes: Tensor) -> Tensor:
        sizes = boxes[..., 2:4] - boxes[..., :2] if trans else boxes[..., 2:4]
        return sizes.float().prod(-1)

    if is_cross:
        shared = _overlaps(data.float(), query_boxes.float(), trans)
        one, other = area(data)[..., :, None], area(query_boxes)[..., None, :]
    else:
        one, other = area(data), area(query_boxes)
        shared = _overlaps(data.float()[..., None, :], query_boxes.float()[..., None, :], trans)[..., 0, 0]
    shared = torch.where((one > 0) & (other > 0), shared, 0)
    return (shared / (one if mode else one + other - shared)).to(data.dtype)


def _nms(
    data: Tensor,
    scores: Tensor,
    iou_threshold: float,
    scores_threshold: float = 0.0,
    max_output_size: int = -1,
    mode: int = 0,
) -> tuple[Tensor, Tensor]:
    """The boxes that overlap no better one; with mode 1 they are two corners and an angle."""
    boxes = data.float().cpu()
    if mode:
        boxes = torch.cat((boxes[:, :4], -boxes[:, 4:]), 1)
    overlaps = _iou(boxes, boxes, bool(mode))
    values = scores.float().cpu()
    left = [index for index in values.argsort(descending=True).tolist() if values[index] > scores_threshold]
    kept: list[int] = []
    while left and (max_output_size < 0 or len(kept) < max_output_size):
        best, *rest = left
        kept.append(best)
        left = [index for index in rest if overlaps[best, index] <= iou_threshold]
    indices = torch.tensor(kept, dtype=torch.int32, device=data.device)
    return indices, torch.tensor([len(kept)], dtype=torch.int32, device=data.device)


def _parts(boxes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Centers, sizes and angles of boxes in five rows (two corners and an angle)."""
    x1, y1, x2, y2, angle = boxes.float().unbind(1)
    return (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, angle * (math.pi / 180)


def _encode(data: Tensor, gt_bboxes: Tensor, weight: Tensor) -> Tensor:
    x, y, width, height, angle = _parts(data)
    x2, y2, width2, height2, angle2 = _parts(gt_bboxes)
    deltas = torch.stack(
        (
            (x2 - x) / width,
            (y2 - y) / height,
            (width2 / width).log(),
            (height2 / height).log(),
            angle2.tan() - angle.tan(),
        ),
        1,
    )
    return (deltas * weight.float()[:, None]).to(data.dtype)


def _decode(data: Tensor, deltas: Tensor, weight: Tensor) -> Tensor:
    x, y, width, height, angle = _parts(data)
    dx, dy, dw, dh, da = (deltas.float() / weight.float()[:, None]).unbind(1)
    x, y, width, height = x + dx * width, y + dy * height, width * dw.exp(), height * dh.exp()
    angle = (angle.tan() + da).atan() * (180 / math.pi)
    boxes = (x - width / 2, y - height / 2, x + width / 2, y + height / 2, angle)
    return torch.stack(boxes, 1).to(data.dtype)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_nms_rotated": _nms,
    "npu_rotated_box_decode": _decode,
    "npu_rotated_box_encode": _encode,
    "npu_rotated_iou": _iou,
    "npu_rotated_overlaps": _overlaps,
}
