"""Boxes of detection, as the references in torch_npu's tests define them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor


def _iou(boxes: Tensor, truth: Tensor, mode: int = 0) -> Tensor:
    """A row for each true box; mode 1 divides by its area alone."""
    low = torch.maximum(boxes[:, :2].float(), truth[:, None, :2].float())
    high = torch.minimum(boxes[:, 2:].float(), truth[:, None, 2:].float())
    shared = (high - low).clamp(min=0).prod(-1)
    of_truth = (truth[:, 2:].float() - truth[:, :2].float()).prod(-1)[:, None]
    of_boxes = (boxes[:, 2:].float() - boxes[:, :2].float()).prod(-1)
    total = of_truth if mode else of_truth + of_boxes - shared
    return (shared / (total + 1e-7)).to(boxes.dtype)


def _corners(boxes: Tensor, trans: bool, between: int) -> tuple[Tensor, Tensor]:
    """Corners with the less and with the greater values, of boxes with four rows."""
    boxes = boxes.float().unsqueeze(between)
    if trans:  # centers and sizes
        return boxes[:2] - boxes[2:] / 2, boxes[:2] + boxes[2:] / 2
    return boxes[:2], boxes[2:]


def _better_iou(kind: str, one: Tensor, other: Tensor, trans: bool, is_cross: bool, mode: int) -> Tensor:
    """Generalized (giou), distance (diou) or complete (ciou) overlaps, of all pairs or one by one."""
    low, high = _corners(one, trans, 2)
    low2, high2 = _corners(other, trans, 1 if is_cross else 2)
    shared = (torch.minimum(high, high2) - torch.maximum(low, low2)).clamp(min=0).prod(0)
    sizes, sizes2 = high - low, high2 - low2
    total = sizes.prod(0) if mode else sizes.prod(0) + sizes2.prod(0) - shared
    overlap = shared / (total + 1e-10)
    around = torch.maximum(high, high2) - torch.minimum(low, low2)
    if kind == "giou":
        hull = around.prod(0) + 1e-10
        return (overlap - (hull - total) / hull).to(one.dtype)
    apart = ((low + high - low2 - high2) / 2).pow(2).sum(0)
    result = overlap - apart / (around.pow(2).sum(0) + 1e-10)
    if kind == "ciou":
        angles = torch.atan(sizes2[0] / sizes2[1]) - torch.atan(sizes[0] / sizes[1])
        shape = 4 / math.pi**2 * angles.pow(2)
        result = result - shape.pow(2) / (1 - overlap + shape + 1e-10)
    return result.to(one.dtype)


def _giou(one: Tensor, other: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0) -> Tensor:
    return _better_iou("giou", one, other, trans, is_cross, mode)


def _diou(one: Tensor, other: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0) -> Tensor:
    return _better_iou("diou", one, other, trans, is_cross, mode)


def _ciou(
    one: Tensor,
    other: Tensor,
    trans: bool = False,
    is_cross: bool = True,
    mode: int = 0,
    atan_sub_flag: bool = False,
) -> Tensor:
    return _better_iou("ciou", one, other, trans, is_cross, mode)


def roi_align(
    data: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, end_mode: int
) -> Tensor:
    """The mean of points in each bin of a region, each between its four neighbours."""
    images = rois[:, 0].long()
    low, high = (rois[:, 1:3] * scale).float(), (rois[:, 3:5] * scale).float()
    if end_mode == 3:  # between the centres of pixels: `aligned=True` of torch_npu's ROIAlign
        low, high = low - 0.5, high - 0.5
    elif end_mode != 0:
        high = high + scale
    sizes = high - low if end_mode == 3 else (high - low).clamp(min=1.0)
    per = samples if samples > 0 else 2

    def points(start: Tensor, size: Tensor, bins: int) -> Tensor:
        steps = (torch.arange(bins * per, device=data.device) + 0.5) / per
        return start[:, None] + steps * (size / bins)[:, None]

    xs, ys = points(low[:, 0], sizes[:, 0], width), points(low[:, 1], sizes[:, 1], height)
    rows, columns = data.shape[2:]
    inside = ((ys > -1) & (ys < rows))[:, :, None] & ((xs > -1) & (xs < columns))[:, None, :]
    ys, xs = ys.clamp(0, rows - 1), xs.clamp(0, columns - 1)
    y0, x0 = ys.floor().long(), xs.floor().long()
    y1, x1 = (y0 + 1).clamp(max=rows - 1), (x0 + 1).clamp(max=columns - 1)
    dy, dx = (ys - y0)[:, None, :, None], (xs - x0)[:, None, None, :]
    source = data.float()

    def at(y: Tensor, x: Tensor) -> Tensor:
        return source[images[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)

    value = (at(y0, x0) * (1 - dx) + at(y0, x1) * dx) * (1 - dy)
    value = value + (at(y1, x0) * (1 - dx) + at(y1, x1) * dx) * dy
    value = value * inside[:, None]
    binned = value.unflatten(3, (width, per)).unflatten(2, (height, per))
    return binned.mean((3, 5)).to(data.dtype)


def _shares(
    rois: Tensor, scale: float, groups: int, rows: int, columns: int
) -> Iterator[tuple[int, int, slice, slice, Tensor]]:
    """Yield of each region with pixels: number, image, rows, columns, and each pixel's share of each bin."""
    for number, (image, *corners) in enumerate(rois.transpose(2, 1).reshape(-1, 5).float().cpu().tolist()):
        start = torch.tensor(corners[:2]).round() * scale
        size = ((torch.tensor(corners[2:]) + 1).round() * scale - start).clamp(min=0.1) / groups
        steps = torch.arange(groups + 1)[:, None] * size + start
        limits = torch.tensor([columns, rows])
        low = torch.minimum(steps[:-1].floor().clamp(min=0), limits).int()
        high = torch.minimum(steps[1:].ceil().clamp(min=0), limits).int()
        left, top = low.amin(0).tolist()
        right, bottom = high.amax(0).tolist()
        if right > left and bottom > top:
            across = _inside(low[:, 0], high[:, 0], left, right)
            down = _inside(low[:, 1], high[:, 1], top, bottom)
            shares = (down[:, None, :, None] * across[:, None]).to(rois.device)
            yield number, int(image), slice(top, bottom), slice(left, right), shares


def _inside(low: Tensor, high: Tensor, first: int, last: int) -> Tensor:
    """Of each bin along one side, the share of each pixel; nothing in a bin without any."""
    pixels = torch.arange(first, last)
    inside = (pixels >= low[:, None]) & (pixels < high[:, None])
    return inside / inside.sum(1, keepdim=True).clamp(min=1)


def _ps_roi_pooling(
    data: Tensor, rois: Tensor, spatial_scale: float, group_size: int, output_dim: int
) -> Tensor:
    """The mean of the pixels of each bin, of the channel that belongs to it."""
    if rois.dim() < 3:
        raise RuntimeError(f"rois only supports at least 3D tensors, rois got: {rois.dim()}D")
    bins = (output_dim, group_size, group_size)
    result = data.new_zeros(rois.shape[0] * rois.shape[2], *bins, dtype=torch.float32)
    places = _shares(rois, spatial_scale, group_size, data.shape[2], data.shape[3])
    for number, image, rows, columns, shares in places:
        part = data[image, :, rows, columns].float().unflatten(0, bins)
        result[number] = (part * shares).sum((-2, -1))
    return result.to(data.dtype)


def _ps_roi_pooling_gradient(
    gradient: Tensor, rois: Tensor, scale: float, groups: int, output_dim: int, sizes: Sequence[int]
) -> Tensor:
    bins = (output_dim, groups, groups)
    result = gradient.new_zeros(rois.shape[0], *bins, *sizes, dtype=torch.float32)
    for number, image, rows, columns, shares in _shares(rois, scale, groups, sizes[0], sizes[1]):
        result[image, ..., rows, columns] += gradient[number].float()[..., None, None] * shares
    return result.flatten(1, 3).to(gradient.dtype)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_ciou": _ciou,
    "npu_diou": _diou,
    "npu_giou": _giou,
    "npu_iou": _iou,
    "npu_ps_roi_pooling": _ps_roi_pooling,
    "npu_ps_roi_pooling_backward": _ps_roi_pooling_gradient,
    "npu_ptiou": _iou,
    "npu_roi_align": roi_align,
}
