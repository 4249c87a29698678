"""The parts of a synchronized batch norm, which torch has for accelerators only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator import compute

_registered: list[torch.library.Library] = []


def register() -> tuple[str, ...]:
    """Register the operators, and return their names."""
    aten = torch.library.Library("aten", "IMPL")
    kernels: dict[str, Callable[..., Any]] = {
        "batch_norm_stats": _stats,
        "batch_norm_gather_stats_with_counts": _gather_stats,
        "batch_norm_elemt": _apply,
        "batch_norm_backward_reduce": _backward_reduce,
        "batch_norm_backward_elemt": _backward_apply,
    }
    for name, kernel in kernels.items():
        compute.implement(aten, name, kernel, "PrivateUse1")
    _registered.append(aten)
    return tuple(kernels)


def _by_channel(values: Tensor, like: Tensor) -> Tensor:
    return values.view(1, -1, *(1 for _ in range(like.dim() - 2)))


def _all_but_channels(data: Tensor) -> list[int]:
    return [dim for dim in range(data.dim()) if dim != 1]


def _stats(data: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    whole = data.float()
    variance, mean = torch.var_mean(whole, _all_but_channels(data), correction=0)
    return mean, torch.rsqrt(variance + eps)


def _gather_stats(
    data: Tensor,
    means: Tensor,
    inverse_deviations: Tensor,
    running_mean: Optional[Tensor],
    running_variance: Optional[Tensor],
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Join the statistics of the ranks, each of which saw so many values of a channel."""
    weights = (counts / counts.sum()).to(means.dtype)[:, None]
    mean = (means * weights).sum(0)
    squares = inverse_deviations.pow(-2) - eps + means.pow(2)
    variance = (squares * weights).sum(0) - mean.pow(2)
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_variance is not None:
        unbiased = variance * (counts.sum() / (counts.sum() - 1))
        running_variance.lerp_(unbiased.to(running_variance.dtype), momentum)
    return mean, torch.rsqrt(variance.clamp(min=0) + eps)


def _sums(data: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    whole, dims = data.float(), _all_but_channels(data)
    return whole.sum(dims), whole.pow(2).sum(dims)


def _gather_sums(
    data: Tensor,
    sums: Tensor,
    squares: Tensor,
    running_mean: Optional[Tensor],
    running_variance: Optional[Tensor],
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Join the sums of the ranks (torch_npu's own way for a synchronized batch norm)."""
    total = counts.sum()
    mean = sums.float().sum(0) / total
    variance = squares.float().sum(0) / total - mean.pow(2)
    for running, value in ((running_mean, mean), (running_variance, variance)):
        if running is not None:
            running.lerp_(value.to(running.dtype), momentum)
    return mean.to(sums.dtype), torch.rsqrt(variance + eps).to(sums.dtype)


def _apply(
    data: Tensor,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    mean: Tensor,
    inverse_deviation: Tensor,
    eps: float,
) -> Tensor:
    normed = (data.float() - _by_channel(mean, data)) * _by_channel(inverse_deviation, data)
    if weight is not None:
        normed = normed * _by_channel(weight.float(), data)
    if bias is not None:
        normed = normed + _by_channel(bias.float(), data)
    return normed.to(data.dtype)


def _backward_reduce(
    gradient: Tensor,
    data: Tensor,
    mean: Tensor,
    inverse_deviation: Tensor,
    weight: Optional[Tensor],
    for_input: bool,
    for_weight: bool,
    for_bias: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dims = _all_but_channels(data)
    total = gradient.float().sum(dims)
    total_by_distance = (gradient.float() * (data.float() - _by_channel(mean, data))).sum(dims)
    dtype = gradient.dtype if weight is None else weight.dtype
    return total, total_by_distance, (total_by_distance * inverse_deviation).to(dtype), total.to(dtype)


def _backward_apply(
    gradient: Tensor,
    data: Tensor,
    mean: Tensor,
    inverse_deviation: Tensor,
    weight: Optional[Tensor],
    total: Tensor,
    total_by_distance: Tensor,
    counts: Tensor,
) -> Tensor:
    number = counts.sum()
    distance = data.float() - _by_channel(mean, data)
    common = _by_channel(total / number, data)
    along = distance * _by_channel(inverse_deviation.pow(2) * total_by_distance / number, data)
    scale = inverse_deviation if weight is None else inverse_deviation * weight.float()
    return ((gradient.float() - common - along) * _by_channel(scale, data)).to(data.dtype)


REFERENCES: dict[str, Callable[..., Any]] = {
    "batch_norm_gather_stats_update": _gather_sums,
    "batch_norm_reduce": _sums,
}
