"""Norms that are joined with sums, activations or quantization, and rotations of positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator.routing import refuse


def _rms(whole: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    scale = torch.rsqrt(whole.pow(2).mean(-1, keepdim=True) + epsilon)
    return whole * scale * gamma.float(), scale


def _add_rms_norm_v2(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """The inverse deviation, the norm and the sum."""
    added = (x1 + x2).float()
    normed, scale = _rms(added, gamma, epsilon)
    return scale, normed.to(x1.dtype), added.to(x1.dtype)


def _add_rms_norm_v2_in_place(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    scale, normed, added = _add_rms_norm_v2(x1, x2, gamma, epsilon)
    x1.copy_(normed)
    x2.copy_(added)
    return scale


def _add_rms_norm_dynamic_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    *,
    smooth_scale1: Optional[Tensor] = None,
    smooth_scale2: Optional[Tensor] = None,
    beta: Optional[Tensor] = None,
    epsilon: float = 1e-6,
    output_mask: Optional[list[bool]] = None,
    y_dtype: Optional[int] = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Quantize the norm once or twice, by the largest of each row."""
    refuse("npu_add_rms_norm_dynamic_quant", {"y_dtype": None if y_dtype == 1 else y_dtype})
    added = x1.float() + x2.float()
    normed = _rms(added, gamma, epsilon)[0]
    if beta is not None:
        normed = normed + beta.float()

    def quantized(smooth: Optional[Tensor]) -> tuple[Tensor, Tensor]:
        whole = normed if smooth is None else normed * smooth.float()
        scale = whole.abs().amax(-1, keepdim=True) / 127
        scale = torch.where(scale > 0, scale, 1.0)
        return (whole / scale).round().clamp(-128, 127).to(torch.int8), scale.squeeze(-1)

    both = smooth_scale1 is not None and smooth_scale2 is not None
    wanted = (True, both) if output_mask is None else tuple(output_mask)
    nothing = (torch.empty(1, dtype=torch.int8, device=x1.device), x1.new_empty(1, dtype=torch.float32))
    first = quantized(smooth_scale1) if wanted[0] else nothing
    second = quantized(smooth_scale2) if wanted[1] else nothing
    return first[0], second[0], added.to(x1.dtype), first[1], second[1]


def _group_norm_swish(
    data: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: Optional[float] = 1e-5,
    swish_scale: Optional[float] = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    epsilon, factor = 1e-5 if eps is None else eps, 1.0 if swish_scale is None else swish_scale
    grouped = data.float().reshape(data.shape[0], num_groups, -1)
    variance, mean = torch.var_mean(grouped, 2, correction=0)
    normed = functional.group_norm(data.float(), num_groups, weight.float(), bias.float(), epsilon)
    result = normed * torch.sigmoid(factor * normed)
    return (
        result.to(data.dtype),
        mean.detach().to(data.dtype),
        torch.rsqrt(variance + epsilon).detach().to(data.dtype),
    )


def _rotate_positions(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    cos_sin_cache: Tensor,
    head_size: int,
    *,
    mrope_section: Optional[list[int]] = None,
    rotary_mode: Optional[str] = "half",
    cache_mode: Optional[str] = "default",
) -> tuple[Tensor, Tensor]:
    """Rotary embedding by positions; three rows of positions share the dimensions by sections."""
    if cache_mode not in ("default", "interleave"):
        raise RuntimeError(f"cache_mode only support default or interleave, but got {cache_mode}")
    cosine, sine = cos_sin_cache.float()[positions.long()].chunk(2, -1)
    if positions.dim() == 2:
        sections = list(mrope_section or [])
        place = torch.arange(cosine.shape[-1], device=query.device)
        if cache_mode == "interleave":
            row = torch.where(place < 3 * sections[1], place % 3, 0)
        else:
            ends = torch.tensor(sections, device=query.device).cumsum(0)
            row = torch.searchsorted(ends, place, right=True).clamp(max=2)
        cosine = cosine.gather(0, row.expand(1, *cosine.shape[1:]))[0]
        sine = sine.gather(0, row.expand(1, *sine.shape[1:]))[0]
    cosine, sine = cosine[:, None], sine[:, None]
    width = cos_sin_cache.shape[-1]

    def turned(data: Tensor) -> Tensor:
        heads = data.float().view(positions.shape[-1], -1, head_size)
        part, rest = heads[..., :width], heads[..., width:]
        if rotary_mode == "half":
            first, second = part.chunk(2, -1)
        else:
            first, second = part[..., ::2], part[..., 1::2]
        pair = (first * cosine - second * sine, second * cosine + first * sine)
        joined = torch.cat(pair, -1) if rotary_mode == "half" else torch.stack(pair, -1).flatten(-2)
        return torch.cat((joined, rest), -1).view(data.shape).to(data.dtype)

    return turned(query), turned(key)


def _write_to_cache(cache: Tensor, rows: Tensor, index: Tensor, mode: str) -> None:
    """Write the rows of each batch where an index says, of each token or with BLK of each block of them."""
    batch, length, width = rows.shape
    size = cache.shape[2] if mode == "Norm" else cache.shape[1]  # of a block
    places = index.long().view(batch, -1)
    if "BLK" in mode:
        tokens = torch.arange(length, device=rows.device)
        first = places[:, tokens // size]
        places = torch.where(first < 0, -1, first // size * size + tokens % size)
    elif mode == "Norm":
        places = torch.arange(batch, device=rows.device)[:, None] * size + places
    kept = places >= 0
    block, inside = places[kept] // size, places[kept] % size
    piece = 32 // cache.element_size() if mode.endswith("NZ") else width  # 32 bytes lie together
    cache.view(-1, width // piece, size, piece)[block, :, inside] = rows[kept].unflatten(-1, (-1, piece))


def _norm_and_rotate_to_cache(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Optional[Tensor] = None,
    c_kv_scale: Optional[Tensor] = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
    **others: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Norm the first part of each row, turn the rest, and write both to caches."""
    refuse("npu_kv_rmsnorm_rope_cache", others)
    normed = _rms(kv[..., : gamma.shape[0]].float(), gamma, epsilon)[0]
    first, second = kv[..., gamma.shape[0] :].float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.cat((first, second), -1) * cos.float() + torch.cat((-second, first), -1) * sin.float()
    for cache, whole, scale in ((k_cache, turned, k_rope_scale), (ckv_cache, normed, c_kv_scale)):
        rows = whole if scale is None else (whole * scale.float()).round().clamp(-128, 127)
        _write_to_cache(cache, rows[:, 0].to(cache.dtype), index, cache_mode)
    return k_cache, ckv_cache, turned.to(kv.dtype), normed.to(kv.dtype)


def _norm_and_rotate_to_copies(*given: Any, **options: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    copies = (*given[:5], *(cache.clone() for cache in given[5:]))
    return _norm_and_rotate_to_cache(*copies, **options)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_add_rms_norm_dynamic_quant": _add_rms_norm_dynamic_quant,
    "npu_add_rms_norm_v2": _add_rms_norm_v2_in_place,
    "npu_add_rms_norm_v2_functional": _add_rms_norm_v2,
    "npu_group_norm_swish": _group_norm_swish,
    "npu_kv_rmsnorm_rope_cache": _norm_and_rotate_to_cache,
    "npu_kv_rmsnorm_rope_cache_v2": lambda *given, **options: _norm_and_rotate_to_cache(*given, **options)[
        2:
    ],
    "npu_kv_rmsnorm_rope_cache_v2_functional": _norm_and_rotate_to_copies,
    "npu_mrope": _rotate_positions,
}
