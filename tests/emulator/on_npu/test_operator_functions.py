"""The functions that stand for CUDA operators: values and gradients are those of plain references."""

from __future__ import annotations

import math
import runpy

import pytest
import torch
import torch_npu  # noqa: F401

from migrator.api_support import support
from migrator.api_support.versions import resolve
from migrator.data_folders import data_folder
from tests.emulator.on_npu.test_equivalent_functions import (
    VERSIONS,
    Operators,
    functions,  # noqa: F401
    of_operators,
    real,
    run,
)

F = torch.nn.functional
torch.manual_seed(0)


def derived(function, inputs, gradient):
    """The gradients of a reference, as a backward operator gives them."""
    with torch.enable_grad():
        leaves = [each.detach().requires_grad_() for each in inputs]
        return torch.autograd.grad(function(*leaves), leaves, gradient)


def bilinear(image, y, x):
    """One place of an image (channels, height, width), zero outside."""
    height, width = image.shape[1:]
    top, left = math.floor(float(y)), math.floor(float(x))
    found = 0
    for row in (top, top + 1):
        for column in (left, left + 1):
            if 0 <= row < height and 0 <= column < width:
                found = found + image[:, row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return found + torch.zeros_like(image[:, 0, 0])


def attend(value, shapes, starts, places, weights, step):
    batch, _, heads, channels = value.shape
    queries, levels, points = places.shape[1], places.shape[3], places.shape[4]
    found = []
    for n in range(batch):
        for q in range(queries):
            for m in range(heads):
                total = torch.zeros(channels)
                for level in range(levels):
                    height, width = shapes[level].tolist()
                    start = int(starts[level])
                    image = value[n, start : start + height * width, m].T.reshape(channels, height, width)
                    for p in range(points):
                        x, y = places[n, q, m, level, p] * torch.tensor([width, height]) - 0.5
                        part = bilinear(image, y, x)
                        total = total + part * weights[n, q, m, level, p]
                found.append(total)
    return torch.stack(found).view(batch, queries, heads * channels)


def attend_backward(value, shapes, starts, places, weights, gradient, step):
    def forward(value, places, weights):
        return attend(value, shapes, starts, places, weights, step)

    return derived(forward, (value, places, weights), gradient)


def convolve(x, weight, bias, offset, mask, kh, kw, sh, sw, ph, pw, dh, dw, groups):
    share, found = x.shape[1] // groups, []
    for n in range(x.shape[0]):
        for row in range(offset.shape[2]):
            for column in range(offset.shape[3]):
                sampled = torch.zeros(x.shape[1], kh, kw)
                for group in range(groups):
                    own = slice(group * share, (group + 1) * share)
                    for i in range(kh):
                        for j in range(kw):
                            point = group * kh * kw + i * kw + j
                            y = row * sh - ph + i * dh + offset[n, 2 * point, row, column]
                            x_ = column * sw - pw + j * dw + offset[n, 2 * point + 1, row, column]
                            value = bilinear(x[n, own], y, x_) * mask[n, point, row, column]
                            here = torch.zeros_like(sampled)
                            here[own, i, j] = 1
                            sampled = (
                                sampled
                                + here * F.pad(value, (own.start, len(x[n]) - own.stop))[:, None, None]
                            )
                found.append((weight * sampled).sum((1, 2, 3)) + bias)
    size = (x.shape[0], *offset.shape[2:], -1)
    return torch.stack(found).view(size).permute(0, 3, 1, 2)


def convolve_backward(x, weight, bias, offset, mask, gradient, *sizes):
    def forward(x, offset, mask, weight, bias):
        return convolve(x, weight, bias, offset, mask, *sizes)

    return derived(forward, (x, offset, mask, weight, bias), gradient)


def furthest(points, count, left_out=0.0):
    found = []
    for cloud in points:
        far, chosen = [1e10] * len(cloud), [0]
        while len(chosen) < count:
            far = [min(known, float((p - cloud[chosen[-1]]).square().sum())) for known, p in zip(far, cloud)]
            asked = [-1 if float(p.square().sum()) <= left_out else known for known, p in zip(far, cloud)]
            chosen.append(max(range(len(cloud)), key=lambda each: asked[each]) if max(asked) >= 0 else 0)
        found.append(chosen)
    return torch.tensor(found, dtype=torch.int32)


def ball(centres, points, radius, count, empty=0):
    found = torch.full((*centres.shape[:2], count), empty, dtype=torch.int32)
    for n in range(centres.shape[0]):
        for c in range(centres.shape[1]):
            near = [
                i
                for i, p in enumerate(points[n])
                if float((p - centres[n, c]).square().sum()) < radius * radius
            ]
            if near:
                found[n, c] = torch.tensor((near + [near[0]] * count)[:count])
    return found


def gathered(points, places):
    return torch.stack([cloud[:, own.long()] for cloud, own in zip(points, places)])


def gathered_backward(gradient, places, count):
    inputs = torch.zeros(gradient.shape[0], gradient.shape[1], count)
    return derived(lambda points: gathered(points, places), (inputs,), gradient)


def nearest(asked, known):
    found = [[(p - own).square().sum(-1).sort() for p in cloud] for cloud, own in zip(asked, known)]
    size = min(3, known.shape[1])
    distances = torch.stack([torch.stack([each[0][:size] for each in cloud]) for cloud in found])
    places = torch.stack([torch.stack([each[1][:size] for each in cloud]) for cloud in found])
    return distances, places.to(torch.int32)


def interpolated(points, places, weights):
    return (gathered(points, places) * weights[:, None]).sum(-1)


def interpolated_backward(gradient, places, weights, count):
    inputs = torch.zeros(gradient.shape[0], gradient.shape[1], count)
    return derived(lambda points: interpolated(points, places, weights), (inputs,), gradient)


def clouds(one, other):
    distance = torch.cdist(one, other, compute_mode="donot_use_mm_for_euclid_dist").square()
    return (*distance.min(2), *distance.min(1))


def clouds_backward(one, other, gradient_one, gradient_other):
    def forward(one, other):
        nearest_one, _, nearest_other, _ = clouds(one, other)
        return (nearest_one * gradient_one).sum() + (nearest_other * gradient_other).sum()

    return derived(forward, (one, other), torch.ones(()))


def filtered(x, kernel, up_x, up_y, down_x, down_y, x0, x1, y0, y1):
    images, height, width, channels = x.shape
    spread = x.new_zeros(images, height * up_y, width * up_x, channels)
    spread[:, ::up_y, ::up_x] = x
    spread = F.pad(spread.permute(0, 3, 1, 2), (x0, x1, y0, y1))
    rows, columns = kernel.shape
    high, wide = spread.shape[2] - rows + 1, spread.shape[3] - columns + 1
    found = sum(
        spread[:, :, rows - 1 - i : rows - 1 - i + high, columns - 1 - j : columns - 1 - j + wide]
        * kernel[i, j]
        for i in range(rows)
        for j in range(columns)
    )
    return found[:, :, ::down_y, ::down_x].permute(0, 2, 3, 1)


def activated(x, bias, refer, act, grad, alpha, scale):
    return F.leaky_relu(x + bias.view(1, -1, 1, 1), alpha) * scale


def activated_backward(x, bias, refer, act, grad, alpha, scale):
    return x * torch.where(refer > 0, 1.0, alpha) * scale


def correlated(one, other, pad, size, most, stride1, stride2):
    one, other = (F.pad(each, (pad,) * 4) for each in (one, other))
    radius, reach = (size - 1) // 2, most // stride2
    rows, columns = (math.ceil((side - 2 * (radius + most)) / stride1) for side in one.shape[2:])
    found = one.new_zeros(len(one), (2 * reach + 1) ** 2, rows, columns)
    for y in range(rows):
        for x in range(columns):
            channel = 0
            for down in range(-reach, reach + 1):
                for right in range(-reach, reach + 1):
                    y1, x1 = y * stride1 + most, x * stride1 + most
                    y2, x2 = y1 + down * stride2, x1 + right * stride2
                    total = 0
                    for j in range(-radius, radius + 1):
                        for i in range(-radius, radius + 1):
                            total = total + (one[:, :, y1 + j, x1 + i] * other[:, :, y2 + j, x2 + i]).sum(1)
                    found[:, channel, y, x] = total / (size * size * one.shape[1])
                    channel += 1
    return found


def correlated_backward(one, other, gradient, *sizes):
    return derived(lambda one, other: correlated(one, other, *sizes), (one, other), gradient)


def resampled(image, flow):
    batch, _, height, width = image.shape
    found = torch.zeros_like(image)
    for n in range(batch):
        for y in range(height):
            for x in range(width):
                right, down = x + flow[n, 0, y, x], y + flow[n, 1, y, x]
                left, top = math.floor(float(right)), math.floor(float(down))
                alpha, beta = right - left, down - top
                for row, part in ((top, 1 - beta), (top + 1, beta)):
                    for column, share in ((left, 1 - alpha), (left + 1, alpha)):
                        row, column = min(max(row, 0), height - 1), min(max(column, 0), width - 1)
                        found[n, :, y, x] = found[n, :, y, x] + image[n, :, row, column] * part * share
    return found


def resampled_backward(image, flow, gradient):
    return derived(resampled, (image, flow), gradient)


def pooled(points, places, lengths, starts, b, d, h, w):
    found = torch.zeros(b, d, h, w, points.shape[1])
    for point, (y, x, z, batch) in zip(points, places.tolist()):
        here = torch.zeros(b, d, h, w, 1)
        here[batch, z, y, x] = 1
        found = found + here * point
    return found


def pooled_backward(gradient, places, lengths, starts, *sizes):
    return derived(
        lambda points: pooled(points, places, lengths, starts, *sizes),
        (torch.zeros(len(places), gradient.shape[-1]),),
        gradient,
    )


def in_between(centres, points, least, most, count):
    every = ball(centres, points, most, points.shape[1], -1)
    found = torch.full((*centres.shape[:2], count), -1, dtype=torch.int32)
    for n, own in enumerate(every):
        for c, places in enumerate(own):
            squares = [float((points[n, i] - centres[n, c]).square().sum()) for i in places]
            near = [int(i) for i, each in zip(places, squares) if i >= 0 and (each >= least**2 or each == 0)]
            near = list(dict.fromkeys(near))
            if near:
                found[n, c] = torch.tensor((near + [near[0]] * count)[:count])
    return found


def known_distances(distances, count):
    chosen = [[0] for _ in distances]
    for own, places in zip(distances, chosen):
        while len(places) < count:
            places.append(int(own[places].min(0)[0].argmax()))
    return torch.tensor(chosen, dtype=torch.int32)


def focal(logits, targets, classes, gamma, alpha):
    found = torch.zeros_like(logits)
    chance = torch.sigmoid(logits)
    for row, target in enumerate(targets.tolist()):
        for each in range(classes):
            p = chance[row, each]
            if target == each + 1:
                found[row, each] = -alpha * (1 - p) ** gamma * torch.log(p)
            elif target >= 0:
                found[row, each] = -(1 - alpha) * p**gamma * torch.log(1 - p)
    return found


def focal_backward(logits, targets, gradient, *numbers):
    return derived(lambda logits: focal(logits, targets, *numbers), (logits,), gradient)


def scan(
    u,
    delta,
    decay,
    enter,
    leave,
    skip=None,
    z=None,
    delta_bias=None,
    delta_softplus=False,
    return_last_state=False,
):
    if delta_bias is not None:
        delta = delta + delta_bias[:, None]
    if delta_softplus:
        delta = F.softplus(delta)
    batch, channels, length = u.shape
    state, found = torch.zeros(batch, channels, decay.shape[1]), []
    for step in range(length):
        into, out = ((each if each.ndim == 2 else each[..., step]) for each in (enter, leave))
        if enter.ndim > 2:
            into, out = (each if each.ndim == 3 else each[:, None] for each in (into, out))
            into, out = (each.repeat_interleave(channels // each.shape[1], 1) for each in (into, out))
        now = delta[:, :, step, None]
        state = torch.exp(now * decay) * state + now * into * u[:, :, step, None]
        found.append((state * out).sum(-1))
    y = torch.stack(found, -1)
    y = y if skip is None else y + u * skip[:, None]
    y = y if z is None else y * F.silu(z)
    return (y, state) if return_last_state else y


def causal(x, weight, bias=None, activation=None, initial_states=None, return_final_states=False):
    before = weight.shape[1] - 1
    start = torch.zeros(*x.shape[:2], before) if initial_states is None else initial_states
    full = torch.cat((start, x), -1)
    found = F.conv1d(full, weight[:, None], bias, groups=x.shape[1])
    found = F.silu(found) if activation else found
    return (found, full[..., full.shape[-1] - before :]) if return_final_states else found


def causal_of_sequences(x, weight, seq_idx):
    parts = [causal(x[:, :, seq_idx[0] == each], weight) for each in seq_idx[0].unique()]
    return torch.cat(parts, -1)


def summed(src, index, dim=-1, out=None, dim_size=None, kind="sum"):
    """torch_scatter by a loop; ``index`` has one dimension."""
    size, moved = dim_size or int(index.max()) + 1, src.movedim(dim, 0)
    found = []
    for each in range(size):
        own = moved[index == each]
        empty = torch.zeros_like(moved[0])
        if kind in ("max", "min"):
            found.append(getattr(own, f"a{kind}")(0) if len(own) else empty)
        else:
            found.append(own.sum(0) / (max(len(own), 1) if kind == "mean" else 1))
    return torch.stack(found).movedim(0, dim)


def extreme(kind):
    def function(src, index, dim=-1, dim_size=None):
        moved, values = src.movedim(dim, 0), summed(src, index, dim, None, dim_size, kind)
        places = torch.full_like(values, len(moved), dtype=torch.int64).movedim(dim, 0)
        for place in reversed(range(len(moved))):
            same = moved[place] == values.movedim(dim, 0)[index[place]]
            places[index[place]][same] = place
        return values, places.movedim(0, dim)

    return function


def placed(function, *sizes, kinds=()):
    """A function that fills tensors of some sizes, as one that gives them; ``kinds`` are their dtypes."""

    def call(*given):
        device = next(each.device for each in given if torch.is_tensor(each))
        types = kinds or [torch.float32] * len(sizes)
        goals = [torch.zeros(size, dtype=kind, device=device) for size, kind in zip(sizes, types)]
        function(*given, *goals)
        return tuple(goals)

    return call


SHAPES, STARTS = torch.tensor([[4, 6], [2, 3]]), torch.tensor([0, 24])
ATTENTION = (real(2, 30, 2, 3), SHAPES, STARTS, real(2, 3, 2, 2, 2, 2, low=-0.1, high=1.1))
WEIGHTS = real(2, 3, 2, 2, 2, low=0)
IMAGE, KERNEL, BIAS = real(2, 4, 6, 7), real(3, 4, 3, 2), real(3)
OFFSETS, MASK = real(2, 2 * 2 * 6, 3, 7), real(2, 2 * 6, 3, 7, low=0)
SIZES = (3, 2, 2, 1, 1, 1, 1, 2, 2)
POINTS, CENTRES = real(2, 9, 3), real(2, 4, 3)
NEAR_ORIGIN = torch.cat((POINTS, torch.zeros(2, 2, 3), POINTS[:, :1]), 1)
FEATURES = real(2, 5, 9)
PLACES, GROUPS = torch.randint(9, (2, 4), dtype=torch.int32), torch.randint(9, (2, 4, 3), dtype=torch.int32)
INT = torch.int32

# Of each function: what makes it one that gives its results, a reference, and calls with their arguments.
as_it_is = lambda function: function  # noqa: E731
CELLS = torch.tensor(
    [[0, 1, 0, 0], [0, 1, 0, 0], [2, 3, 0, 1], [1, 1, 0, 0], [2, 3, 0, 1], [0, 0, 0, 1], [2, 3, 0, 0]],
    dtype=INT,
)
CASES = {
    "ms_deform_attn_forward": (as_it_is, attend, [(*ATTENTION, WEIGHTS, 64)]),
    "ms_deform_attn_backward": (
        lambda function: lambda *given: tuple(function(*given)),
        attend_backward,
        [(*ATTENTION, WEIGHTS, real(2, 3, 6), 64)],
    ),
    "dcn_v2_forward": (as_it_is, convolve, [(IMAGE, KERNEL, BIAS, OFFSETS, MASK, *SIZES)]),
    "dcn_v2_backward": (
        lambda function: lambda *given: tuple(function(*given)),
        convolve_backward,
        [(IMAGE, KERNEL, BIAS, OFFSETS, MASK, real(2, 3, 3, 7), *SIZES)],
    ),
    "furthest_point_sampling": (
        as_it_is,
        lambda points, count: furthest(points, count, 1e-3),
        [(POINTS, 5), (NEAR_ORIGIN, 7)],
    ),
    "furthest_point_sampling_wrapper": (
        lambda function: (
            lambda points: placed(
                lambda p, idx: function(2, 9, 5, p, torch.full((2, 9), 1e10, device=p.device), idx),
                (2, 5),
                kinds=[INT],
            )(points)
        ),
        lambda points: furthest(points, 5),
        [(POINTS,)],
    ),
    "ball_query": (as_it_is, ball, [(CENTRES, POINTS, 2.5, 4), (CENTRES, POINTS, 0.1, 3)]),
    "ball_query_wrapper": (
        lambda function: (
            lambda c, p, radius: placed(
                lambda c, p, idx: function(2, 9, 4, radius, 3, c, p, idx.fill_(-1)), (2, 4, 3), kinds=[INT]
            )(c, p)
        ),
        lambda c, p, radius: ball(c, p, radius, 3, -1),
        [(CENTRES, POINTS, 2.5), (CENTRES, POINTS, 0.9)],
    ),
    "gather_points": (as_it_is, gathered, [(FEATURES, PLACES)]),
    "gather_points_grad": (as_it_is, gathered_backward, [(real(2, 5, 4), PLACES, 9)]),
    "gather_points_wrapper": (
        lambda function: placed(lambda f, i, out: function(2, 5, 9, 4, f, i, out), (2, 5, 4)),
        lambda features, places: gathered(features.detach(), places),
        [(FEATURES, PLACES)],
    ),
    "gather_points_grad_wrapper": (
        lambda function: placed(lambda g, i, out: function(2, 5, 9, 4, g, i, out), (2, 5, 9)),
        lambda gradient, places: gathered_backward(gradient.detach(), places, 9),
        [(real(2, 5, 4), PLACES)],
    ),
    "group_points": (as_it_is, gathered, [(FEATURES, GROUPS)]),
    "group_points_grad": (as_it_is, gathered_backward, [(real(2, 5, 4, 3), GROUPS, 9)]),
    "group_points_wrapper": (
        lambda function: placed(lambda f, i, out: function(2, 5, 9, 4, 3, f, i, out), (2, 5, 4, 3)),
        lambda features, places: gathered(features.detach(), places),
        [(FEATURES, GROUPS)],
    ),
    "group_points_grad_wrapper": (
        lambda function: placed(lambda g, i, out: function(2, 5, 9, 4, 3, g, i, out), (2, 5, 9)),
        lambda gradient, places: gathered_backward(gradient.detach(), places, 9),
        [(real(2, 5, 4, 3), GROUPS)],
    ),
    "three_nn": (
        lambda function: lambda *given: tuple(each.detach() for each in function(*given)),
        lambda asked, known: nearest(asked.detach(), known.detach()),
        [(CENTRES, POINTS)],
    ),
    "three_nn_wrapper": (
        lambda function: placed(
            lambda c, p, d, i: function(2, 4, 9, c, p, d, i), (2, 4, 3), (2, 4, 3), kinds=[torch.float32, INT]
        ),
        lambda asked, known: nearest(asked.detach(), known.detach()),
        [(CENTRES, POINTS)],
    ),
    "three_interpolate": (as_it_is, interpolated, [(FEATURES, GROUPS, real(2, 4, 3))]),
    "three_interpolate_grad": (as_it_is, interpolated_backward, [(real(2, 5, 4), GROUPS, real(2, 4, 3), 9)]),
    "three_interpolate_wrapper": (
        lambda function: placed(lambda f, i, w, out: function(2, 5, 9, 4, f, i, w, out), (2, 5, 4)),
        lambda *given: interpolated(*given).detach(),
        [(FEATURES, GROUPS, real(2, 4, 3))],
    ),
    "three_interpolate_grad_wrapper": (
        lambda function: placed(lambda g, i, w, out: function(2, 5, 4, 9, g, i, w, out), (2, 5, 9)),
        lambda gradient, places, weights: interpolated_backward(gradient.detach(), places, weights, 9),
        [(real(2, 5, 4), GROUPS, real(2, 4, 3))],
    ),
    "ball_query_between": (
        lambda function: (
            lambda c, p, least, most: placed(
                lambda c, p, idx: function(2, 9, 4, least, most, 3, c, p, idx.fill_(-1)),
                (2, 4, 3),
                kinds=[INT],
            )(c, p)
        ),
        lambda c, p, least, most: in_between(c, p, least, most, 3),
        [(CENTRES, POINTS, 1.0, 2.5), (CENTRES, POINTS, 0.0, 0.9)],
    ),
    "knn_wrapper": (
        lambda function: placed(
            lambda c, p, i, d: function(2, 9, 4, 3, p, c, i, d),
            (2, 4, 3),
            (2, 4, 3),
            kinds=[INT, torch.float32],
        ),
        lambda c, p: nearest(c.detach(), p.detach())[::-1],
        [(CENTRES, POINTS)],
    ),
    "furthest_point_sampling_with_dist_wrapper": (
        lambda function: placed(
            lambda d, idx: function(2, 9, 5, d, torch.full((2, 9), 1e10, device=d.device), idx),
            (2, 5),
            kinds=[INT],
        ),
        lambda distances: known_distances(distances, 5),
        [(torch.cdist(POINTS, POINTS).square(),)],
    ),
    "bev_pool_forward": (as_it_is, pooled, [(real(7, 3), CELLS, None, None, 2, 1, 3, 4)]),
    "bev_pool_backward": (as_it_is, pooled_backward, [(real(2, 1, 3, 4, 3), CELLS, None, None, 2, 1, 3, 4)]),
    "modulated_deform_conv_forward": (
        lambda function: (
            lambda x, weight, bias, offset, mask, *sizes: placed(
                lambda *given: function(
                    *given[:3], x.new(), *given[3:], x.new(), *sizes[:-1], 1, sizes[-1], True
                ),
                (2, 3, 3, 7),
            )(x, weight, bias, offset, mask)
        ),
        lambda *given: convolve(*given).detach(),
        [(IMAGE, KERNEL, BIAS, OFFSETS, MASK, *SIZES)],
    ),
    "modulated_deform_conv_backward": (
        lambda function: (
            lambda x, weight, bias, offset, mask, gradient, *sizes: placed(
                lambda *given: function(
                    *given[:3],
                    x.new(),
                    *given[3:5],
                    x.new(),
                    *given[5:],
                    gradient,
                    *sizes[:-1],
                    1,
                    sizes[-1],
                    True,
                ),
                *(each.shape for each in (x, weight, bias, offset, mask)),
            )(x, weight, bias, offset, mask)
        ),
        lambda *given: tuple(convolve_backward(*given)[each] for each in (0, 3, 4, 1, 2)),
        [(IMAGE, KERNEL, BIAS, OFFSETS, MASK, real(2, 3, 3, 7), *SIZES)],
    ),
    "chamfer_forward": (
        lambda function: placed(
            function, (2, 4), (2, 9), (2, 4), (2, 9), kinds=[torch.float32] * 2 + [INT] * 2
        ),
        lambda one, other: tuple(
            (each if each.is_floating_point() else each.to(INT)) for each in reordered(*clouds(one, other))
        ),
        [(CENTRES, POINTS)],
    ),
    "chamfer_backward": (
        lambda function: (
            lambda one, other, g1, g2, i1, i2: placed(
                lambda o, t, a, b: function(o, t, a, b, g1, g2, i1, i2), (2, 4, 3), (2, 9, 3)
            )(one, other)
        ),
        lambda one, other, g1, g2, i1, i2: clouds_backward(one, other, g1, g2),
        [
            (
                *(CENTRES, POINTS, real(2, 4), real(2, 9)),
                *(each.to(INT) for each in clouds(CENTRES, POINTS)[1::2]),
            )
        ],
    ),
    "upfirdn2d": (
        as_it_is,
        filtered,
        [(real(2, 5, 4, 3), real(4, 3), 2, 1, 1, 2, 1, 2, 2, 1), (real(6, 5, 4, 1), real(2, 2), *[1] * 8)],
    ),
    "fused_bias_act": (
        as_it_is,
        lambda *given: (activated_backward if given[4] else activated)(*given),
        [
            (real(2, 4, 3, 5), real(4), torch.zeros(0), 3, 0, 0.2, 1.5),
            (real(2, 4, 3, 5), torch.zeros(0), real(2, 4, 3, 5), 3, 1, 0.2, 1.5),
        ],
    ),
    "correlation_forward": (
        lambda function: (
            lambda one, other, *sizes: placed(
                lambda o, t, out: function(o.detach(), t.detach(), o.new(), o.new(), out, *sizes, 1), (0,)
            )(one, other)
        ),
        lambda *given: correlated(*given).detach(),
        [(real(2, 3, 6, 7), real(2, 3, 6, 7), *sizes) for sizes in ((4, 1, 4, 1, 2), (3, 3, 3, 2, 2))],
    ),
    "correlation_backward": (
        lambda function: (
            lambda one, other, gradient, *sizes: placed(
                lambda o, t, a, b: function(o, t, o.new(), o.new(), gradient, a, b, *sizes, 1), (0,), (0,)
            )(one, other)
        ),
        correlated_backward,
        [(real(1, 3, 5, 4), real(1, 3, 5, 4), real(1, 9, 5, 4), 2, 1, 2, 1, 2)],
    ),
    "resample2d_forward": (
        lambda function: placed(lambda i, f, out: function(i, f, out, 1, True), (2, 3, 5, 6)),
        lambda *given: resampled(*given).detach(),
        [(real(2, 3, 5, 6), real(2, 2, 5, 6))],
    ),
    "resample2d_backward": (
        lambda function: (
            lambda image, flow, gradient: placed(
                lambda i, f, a, b: function(i, f, gradient, a, b, 1, True), (1, 3, 4, 5), (1, 2, 4, 5)
            )(image, flow)
        ),
        resampled_backward,
        [(real(1, 3, 4, 5), real(1, 2, 4, 5), real(1, 3, 4, 5))],
    ),
    "channelnorm_forward": (
        lambda function: placed(lambda x, out: function(x.detach(), out, 2), (2, 1, 4, 5)),
        lambda x: torch.linalg.vector_norm(x.detach(), dim=1, keepdim=True),
        [(real(2, 3, 4, 5),)],
    ),
    "channelnorm_backward": (
        lambda function: (
            lambda x, gradient: placed(
                lambda x, out: function(
                    x, torch.linalg.vector_norm(x, dim=1, keepdim=True), gradient, out, 2
                ),
                (2, 3, 4, 5),
            )(x)
        ),
        lambda x, gradient: derived(
            lambda x: torch.linalg.vector_norm(x, dim=1, keepdim=True), (x,), gradient
        ),
        [(real(2, 3, 4, 5), real(2, 1, 4, 5))],
    ),
    "sigmoid_focalloss_forward": (
        as_it_is,
        focal,
        [(real(5, 4), torch.tensor([0, 1, 4, -1, 2], dtype=INT), 4, 2.0, 0.25)],
    ),
    "sigmoid_focalloss_backward": (
        as_it_is,
        focal_backward,
        [(real(5, 4), torch.tensor([0, 1, 4, -1, 2], dtype=INT), real(5, 4), 4, 1.5, 0.3)],
    ),
    "selective_scan_fn": (
        as_it_is,
        scan,
        [
            (real(2, 4, 5), real(2, 4, 5, low=0.1), real(4, 3, high=0), real(2, 3, 5), real(2, 3, 5)),
            (
                *(real(2, 4, 5), real(2, 4, 5), real(4, 3, high=0), real(2, 2, 3, 5), real(2, 2, 3, 5)),
                *(real(4), real(2, 4, 5), real(4), True, True),
            ),
            (real(2, 4, 5), real(2, 4, 5, low=0.1), real(4, 3, high=0), real(4, 3), real(4, 3), real(4)),
        ],
    ),
    "causal_conv1d_fn": (
        as_it_is,
        lambda x, weight, bias=None, seq_idx=None, *states, activation=None: (
            causal(x, weight, bias, activation, *states)
            if seq_idx is None
            else causal_of_sequences(x, weight, seq_idx)
        ),
        [
            (real(2, 4, 7), real(4, 3), real(4), {"activation": "silu"}),
            (real(2, 4, 7), real(4, 3), None, None, real(2, 4, 2), True),
            (real(1, 4, 7), real(4, 3), None, torch.tensor([[0, 0, 0, 1, 1, 2, 2]], dtype=INT)),
        ],
    ),
    **{
        f"scatter{name}": (
            as_it_is,
            lambda *given, kind=kind, **named: summed(*given, kind=named.pop("reduce", kind), **named),
            [
                (real(3, 5), torch.tensor([0, 2, 2, 0, 3])),
                (real(4, 3), torch.tensor([1, 1, 0, 3]), 0, None, 6),
            ],
        )
        for name, kind in (("_sum", "sum"), ("_add", "sum"), ("_mean", "mean"))
    },
    "scatter": (
        as_it_is,
        lambda src, index, dim, reduce: summed(src, index, dim, kind=reduce),
        [
            (real(4, 3), torch.tensor([1, 1, 0, 3]), 0, {"reduce": kind})
            for kind in ("max", "min", "mean", "sum")
        ],
    ),
    "scatter_max": (as_it_is, extreme("max"), [(real(3, 5), torch.tensor([0, 2, 2, 0, 3]))]),
    "scatter_min": (as_it_is, extreme("min"), [(real(4, 3), torch.tensor([1, 1, 0, 3]), 0, {"dim_size": 5})]),
}


# What no reference of ours is for: test_cuda_kernels.py holds them to their kernels.
BY_KERNELS = {name for name in of_operators() if name.startswith(("boxes_", "nms_"))}

# Functions of libraries are in modules of ours.
OF_LIBRARIES = {
    **dict.fromkeys((name for name in CASES if name.startswith("scatter")), "ascend_scatter"),
    "causal_conv1d_fn": "ascend_causal_conv1d",
    "selective_scan_fn": "ascend_selective_scan",
}


def function_of(functions, name: str):  # noqa: F811
    if name not in OF_LIBRARIES:
        return getattr(functions, name)
    return runpy.run_path(str(data_folder("reports") / "modules" / f"{OF_LIBRARIES[name]}.py"))[name]


def reordered(nearest_one, place_one, nearest_other, place_other):
    return nearest_one.detach(), nearest_other.detach(), place_one, place_other


CALLS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in CASES
    for number in range(len(CASES[name][2]))
]
# They fill the tensors that they are given, or are backward operators: nothing is derived from them.
PLAIN = {name for name in CASES if name.endswith(("_wrapper", "_backward", "_grad"))}
PLAIN |= {
    "modulated_deform_conv_forward",
    "ball_query_between",
    "chamfer_forward",
    "correlation_forward",
    "resample2d_forward",
    "channelnorm_forward",
    "three_nn",
}


@pytest.mark.parametrize(("name", "number"), CALLS)
def test_gives_what_the_reference_gives(functions, name: str, number: int) -> None:  # noqa: F811
    wrapped, reference, calls = CASES[name]
    derives = name not in PLAIN
    wanted, of_reference = run(reference, calls[number], "cpu", derives)
    with Operators() as seen:
        results, gradients = run(wrapped(function_of(functions, name)), calls[number], "npu", derives)
    assert all(each.device.type == "npu" for each in (*results, *gradients))
    assert (len(results), len(gradients)) == (len(wanted), len(of_reference))
    for one, other in zip((*results, *gradients), (*wanted, *of_reference)):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
    for version in VERSIONS:
        lacking = {each for each in seen.names if support.kernel(each, resolve(version)) == "none"}
        assert not lacking - {"detach", "alias", "_to_copy"}, version


def test_each_function_of_the_table_is_there_and_has_a_case(functions) -> None:  # noqa: F811
    assert of_operators() | set(OF_LIBRARIES) == set(CASES) | BY_KERNELS
    assert of_operators() <= set(functions.__all__)
