"""Overlaps of boxes (…, 7) seen from above: x, y, z, dx, dy, dz, heading."""

# npumigrate: skip-file

import torch


def overlaps(one, other):
    """The areas that pairs of boxes share, with iou3d_nms' margin of 0.01 around corners."""
    _check(one, other)
    one, other = torch.broadcast_tensors(one, other)
    own, others = _corners(one), _corners(other)
    crossed, crosses = _crossings(own, others)
    points = torch.cat((crossed.flatten(-3, -2), others, own), -2)
    counts = torch.cat((crosses.flatten(-2), _inside(one, others), _inside(other, own)), -1)
    number = counts.to(points.dtype).unsqueeze(-1)
    centre = (points * number).sum(-2, keepdim=True) / number.sum(-2, keepdim=True).clamp(min=1)
    # Around their centre: this grows as the angle does.
    x, y = (points - centre).unbind(-1)
    turn = x / (x.abs() + y.abs()).clamp(min=1e-30)
    angle = torch.where(y < 0, turn - 1, 1 - turn).masked_fill(~counts, 9)
    order = torch.sort(angle, -1)[1]
    sorted_points = points.gather(-2, order.unsqueeze(-1).expand(points.shape))
    first = sorted_points[..., :1, :]
    there = counts.gather(-1, order).unsqueeze(-1)
    x, y = torch.where(there, sorted_points - first, torch.zeros_like(sorted_points)).unbind(-1)
    return (x[..., :-1] * y[..., 1:] - y[..., :-1] * x[..., 1:]).sum(-1).abs() / 2


def shares(one, other):
    """The areas that pairs of boxes share, as parts of what both cover."""
    shared = overlaps(one, other)
    return shared / (one[..., 3] * one[..., 4] + other[..., 3] * other[..., 4] - shared).clamp(min=1e-8)


def of_all(function, one, other):
    """A function of pairs for each box with each other, some rows at a time."""
    _check(one, other)
    rows = max(1, (1 << 17) // max(1, other.shape[0]))
    found = [function(part[:, None], other[None]) for part in one.split(rows)]
    return torch.cat(found) if found else one.new_zeros(0, other.shape[0])


def keep_first(near, keep):
    """``keep`` gets the boxes that are near none before them that is kept; returns their number."""
    near, kept = near.cpu(), []
    removed = torch.zeros(near.shape[0], dtype=torch.bool)
    for each in range(near.shape[0]):
        if not removed[each]:
            kept.append(each)
            removed |= near[each]
    keep[: len(kept)] = torch.tensor(kept, dtype=keep.dtype)
    return len(kept)


def _check(one, other):
    if one.shape[-1] != 7 or other.shape[-1] != 7:
        raise ValueError("overlaps of boxes on NPUs: boxes have to be x, y, z, dx, dy, dz, heading")


def _corners(boxes):
    x = boxes[..., 3:4] / 2 * boxes.new_tensor((-1.0, 1.0, 1.0, -1.0))
    y = boxes[..., 4:5] / 2 * boxes.new_tensor((-1.0, -1.0, 1.0, 1.0))
    cos, sin = boxes[..., 6:7].cos(), boxes[..., 6:7].sin()
    return torch.stack((x * cos - y * sin, x * sin + y * cos), -1) + boxes[..., None, :2]


def _inside(boxes, points):
    x, y = (points - boxes[..., None, :2]).unbind(-1)
    cos, sin = boxes[..., 6:7].cos(), boxes[..., 6:7].sin()
    along, across = (x * cos + y * sin).abs(), (y * cos - x * sin).abs()
    return (along < boxes[..., 3:4] / 2 + 0.01) & (across < boxes[..., 4:5] / 2 + 0.01)


def _crossings(own, others):
    """The points (…, 4, 4, 2) in which sides cross, and whether they do."""
    p0, p1 = own.unsqueeze(-2), own.roll(-1, -2).unsqueeze(-2)
    q0, q1 = others.unsqueeze(-3), others.roll(-1, -2).unsqueeze(-3)

    def side(one, other, start):
        (ax, ay), (bx, by) = (one - start).unbind(-1), (other - start).unbind(-1)
        return ax * by - bx * ay

    first, fifth = side(q0, p1, p0), side(q1, p1, p0)
    crosses = (first * side(p1, q1, p0) > 0) & (side(p0, q1, q0) * side(q1, p1, q0) > 0)
    between = (fifth - first).unsqueeze(-1)
    between = torch.where(between.abs() > 1e-8, between, torch.ones_like(between))
    return (fifth.unsqueeze(-1) * q0 - first.unsqueeze(-1) * q1) / between, crosses
