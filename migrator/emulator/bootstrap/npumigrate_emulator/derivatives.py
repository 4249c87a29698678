"""Derivatives that torch_npu has as operators of their own, for programs to call, and a few plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor


def _of(name: str, count: int) -> Callable[..., Any]:
    """The derivative of an operator for its first arguments, which follow the gradient of its result."""

    def backward(gradient: Tensor, *given: Any, **options: Any) -> Any:
        inputs = [data.detach().requires_grad_() for data in given[:count]]
        with torch.enable_grad():
            found = _reference(name)(*inputs, *given[count:], **options)
            result = found[0] if isinstance(found, tuple) else found
            parts = torch.autograd.grad(result, inputs, gradient.to(result.dtype))
        return parts[0] if count == 1 else parts

    return backward


def _reference(name: str) -> Callable[..., Any]:
    from npumigrate_emulator import fused  # it imports this module

    return fused.REFERENCES[name]


def _silu(gradient: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    result: Tensor = _of("npu_silu", 1)(gradient, x0)
    return result


def _rms_norm(gradient: Tensor, data: Tensor, gamma: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    whole, scale = data.float(), rstd.float()
    normed = whole * scale
    scaled = gradient.float() * gamma.float()
    dims = tuple(range(-gamma.dim(), 0))
    of_data = scale * (scaled - normed * (scaled * normed).mean(dims, keepdim=True))
    return of_data.to(data.dtype), _over_rows(gradient.float() * normed, gamma)


def _over_rows(data: Tensor, gamma: Tensor) -> Tensor:
    return data.reshape(-1, *gamma.shape).sum(0)


def _norm(
    gradient: Tensor, whole: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Of a layer norm: for its input, its weight and its bias."""
    dims = tuple(range(-gamma.dim(), 0))
    normed = (whole - mean.float()) * rstd.float()
    scaled = gradient.float() * gamma.float()
    centered = scaled - scaled.mean(dims, keepdim=True) - normed * (scaled * normed).mean(dims, keepdim=True)
    return (
        centered * rstd.float(),
        _over_rows(gradient.float() * normed, gamma),
        _over_rows(gradient.float(), gamma),
    )


def _add_layer_norm(
    gradient: Optional[Tensor],
    x1: Tensor,
    x2: Tensor,
    rstd: Tensor,
    mean: Tensor,
    gamma: Tensor,
    of_sum: Optional[Tensor],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    given = torch.zeros_like(x1) if gradient is None else gradient
    of_added, of_gamma, of_beta = _norm(given, x1.float() + x2.float(), gamma, mean, rstd)
    of_added = (of_added if of_sum is None else of_added + of_sum.float()).to(x1.dtype)
    return of_added, of_added.clone(), of_gamma, of_beta


def _deep_norm(
    gradient: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, alpha: float = 0.3
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    of_added, of_gamma, of_beta = _norm(gradient, alpha * x.float() + gx.float(), gamma, mean, rstd)
    return (of_added * alpha).to(x.dtype), of_added.to(x.dtype), of_beta, of_gamma


def _scaled_masked_softmax(
    gradient: Tensor, result: Tensor, mask: Tensor, scale: float, fixed_triu_mask: bool
) -> Tensor:
    weighted = gradient.float() * result.float()
    whole = (weighted - result.float() * weighted.sum(-1, keepdim=True)) * scale
    return whole.to(result.dtype)


def _linear(gradient: Tensor, data: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return gradient @ weight, gradient.flatten(0, -2).t() @ data.flatten(0, -2)


def _extreme(gradient: Tensor, dim: int, indices: Tensor, sizes: list[int], keepdim: bool) -> Tensor:
    if not keepdim and sizes:
        gradient, indices = gradient.unsqueeze(dim), indices.unsqueeze(dim)
    return gradient.new_zeros(sizes).scatter_(dim, indices.long(), gradient)


def _top_k_top_p(logits: Tensor, p: Optional[Tensor] = None, k: Optional[Tensor] = None) -> Tensor:
    """Leave the k largest, and of these as many as have the probability p together; the others are -inf."""
    values, order = logits.sort(dim=-1, stable=True)
    if k is not None:
        least = values.gather(1, (logits.shape[1] - k.long()).clamp(min=0)[:, None])
        values = values.masked_fill(values < least, float("-inf"))
    if p is not None:
        hidden = values.float().softmax(-1).cumsum(-1) <= 1 - p.float()[:, None]
        hidden[:, -1] = False
        values = values.masked_fill(hidden, float("-inf"))
    return torch.empty_like(values).scatter_(-1, order, values)


def _add_rms_norm_cast(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    added = x1.float() + x2.float()
    scale = torch.rsqrt(added.pow(2).mean(-1, keepdim=True) + epsilon)
    normed = added * scale * gamma.float()
    return normed, normed.to(x1.dtype), scale, added.to(x1.dtype)


def _copy_of_strides(data: Tensor, shape: list[int], stride: list[int], storage_offset: int) -> Tensor:
    return data.as_strided(shape, stride, storage_offset).contiguous()


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_add_layer_norm_backward": _add_layer_norm,
    "npu_add_rms_norm_cast": _add_rms_norm_cast,
    "npu_deep_norm_backward": _deep_norm,
    "npu_fast_gelu_backward": _of("npu_fast_gelu", 1),
    "npu_linear_backward": _linear,
    "npu_max_backward": _extreme,
    "npu_min_backward": _extreme,
    "npu_mish_backward": _of("npu_mish", 1),
    "npu_rms_norm_backward": _rms_norm,
    "npu_rotary_mul_backward": _of("npu_rotary_mul", 3),
    "npu_scaled_masked_softmax_backward": _scaled_masked_softmax,
    "npu_silu_backward": _silu,
    "npu_stride_copy": _copy_of_strides,
    "npu_swiglu_backward": _of("npu_swiglu", 1),
    "npu_top_k_top_p": _top_k_top_p,
}
