"""Quantization: what torch_npu has for it, as the references in op-plugin's tests define it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator import arrangement
from npumigrate_emulator.routing import refuse

_NUMBERS = {1: torch.int8, 2: torch.int8, 3: torch.int32, 12: torch.int8, 13: torch.uint8, 14: torch.int32}

_FLOATS = {5: torch.float16, 15: torch.bfloat16, 3: torch.int32}


def _dynamic_quant(
    data: Tensor,
    *,
    smooth_scales: Optional[Tensor] = None,
    group_index: Optional[Tensor] = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Quantize by the largest of each token, or of each channel."""
    bits = _bits_of("npu_dynamic_quant", dst_type)
    whole = _smoothed(data, smooth_scales, group_index)
    size = whole.abs()
    largest = size.amax() if quant_mode == "pertensor" else size.amax(_DIMS[quant_mode], keepdim=True)
    scale = largest / ((1 << bits - 1) - 1)
    return _rounded(whole / scale, bits), _of_mode(scale, quant_mode)


def _dynamic_quant_asymmetric(
    data: Tensor,
    *,
    smooth_scales: Optional[Tensor] = None,
    group_index: Optional[Tensor] = None,
    dst_type: Any = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """By the largest and the least, which become the largest and the least number."""
    bits = _bits_of("npu_dynamic_quant_asymmetric", dst_type)
    whole = _smoothed(data, smooth_scales, group_index)
    if quant_mode == "pertensor":
        most, least = whole.amax(), whole.amin()
    else:
        dim = _DIMS[quant_mode]
        most, least = whole.amax(dim, keepdim=True), whole.amin(dim, keepdim=True)
    scale = (most - least) / ((1 << bits) - 1)
    offset = (1 << bits - 1) - 1 - most / scale
    quantized = _rounded(whole / scale + offset, bits)
    return quantized, _of_mode(scale, quant_mode), _of_mode(offset, quant_mode)


_DIMS = {"pertoken": -1, "perchannel": -2}


def _bits_of(name: str, dst_type: Any) -> int:
    """Return 4 for numbers of four bits, eight of which are one of 32, else 8."""
    four = dst_type in (16, torch.quint4x2)
    refuse(name, {"dst_type": None if four or dst_type in (None, 1, torch.int8) else dst_type})
    return 4 if four else 8


def _rounded(numbers: Tensor, bits: int) -> Tensor:
    whole = numbers.round().clamp(-(1 << bits - 1), (1 << bits - 1) - 1)
    return whole.to(torch.int8) if bits == 8 else _in_words(whole)


def _of_mode(scale: Tensor, quant_mode: str) -> Tensor:
    return scale.reshape(1) if quant_mode == "pertensor" else scale.squeeze(_DIMS[quant_mode])


def _smoothed(data: Tensor, scales: Optional[Tensor], ends: Optional[Tensor]) -> Tensor:
    whole = data.float()
    if scales is None:
        return whole
    if ends is None:
        return whole * scales.float()
    rows = torch.arange(whole[..., 0].numel(), device=data.device)
    group = torch.searchsorted(ends.to(rows.dtype), rows, right=True)
    return (whole.view(-1, whole.shape[-1]) * scales.float()[group]).view(whole.shape)


def _quantize(
    data: Tensor,
    scales: Tensor,
    zero_points: Optional[Tensor],
    dtype: Any,
    axis: int = 1,
    div_mode: bool = True,
) -> Tensor:
    target = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}.get(dtype, dtype)
    target = _NUMBERS.get(target, torch.int8) if isinstance(target, int) else target

    def along(values: Tensor) -> Tensor:
        if values.numel() == 1:
            return values.float()
        sizes = [1] * data.dim()
        sizes[axis] = -1
        return values.float().view(sizes)

    whole = data.float() / along(scales) if div_mode else data.float() * along(scales)
    if zero_points is not None:
        whole = whole.round() + along(zero_points) if div_mode else whole + along(zero_points)
    limits = torch.iinfo(target)
    return whole.round().clamp(limits.min, limits.max).to(target)


def _anti_quant(
    data: Tensor,
    scale: Tensor,
    *,
    offset: Optional[Tensor] = None,
    dst_dtype: Any = None,
    src_dtype: Any = None,
) -> Tensor:
    dtype = {None: torch.float16, 5: torch.float16, 15: torch.bfloat16}.get(dst_dtype, dst_dtype)
    whole = data.float() if offset is None else data.float() + offset.float()
    result: Tensor = (whole * scale.float()).to(dtype)
    return result


def _trans_quant_param(
    scale: Tensor, offset: Optional[Tensor] = None, round_mode: Optional[int] = 0
) -> Tensor:
    """The bits of a scale, 19 of them, and of an offset, as the matrix unit reads them."""
    bits = (scale.float().view(torch.int32) & -0x2000).long() & 0xFFFFFFFF | (1 << 46)
    if offset is None:
        return bits
    rounded = offset.float().round().clamp(-256, 255).long() & 0x1FF
    return bits | rounded << 37


def quant_matmul(
    one: Tensor,
    other: Tensor,
    scale: Tensor,
    *,
    offset: Optional[Tensor] = None,
    pertoken_scale: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    output_dtype: Any = None,
    group_sizes: Optional[list[int]] = None,
    **others: Any,
) -> Tensor:
    """Multiply integers, and scale the rows and columns of the result."""
    refuse("npu_quant_matmul", others, x1=None if one.dtype == torch.int8 else one.dtype)
    by = scale if scale.dtype != torch.int64 else (scale & 0xFFFFFFFF).int().view(torch.float32)
    if other.dtype == torch.int32 and group_sizes and pertoken_scale is not None:
        refuse("npu_quant_matmul", {"bias": bias})
        return _by_groups(one, _unpacked(other), by, offset, pertoken_scale, output_dtype)
    refuse("npu_quant_matmul", {"group_sizes": group_sizes})
    total = (one.cpu().int() @ other.cpu().int()).to(one.device)
    if bias is not None and bias.dtype == torch.int32:
        total = total + bias
    result = total.float() * by.float()
    if pertoken_scale is not None:
        result = result * pertoken_scale.float()[..., None]
    if bias is not None and bias.dtype != torch.int32:
        result = result + bias.float()
    if output_dtype in (None, 1, torch.int8):
        if offset is not None:
            result = result + offset.float()
        return result.round().clamp(-128, 127).to(torch.int8)
    return result.to(_FLOATS.get(output_dtype, output_dtype))


def _by_groups(
    one: Tensor, other: Tensor, scale: Tensor, offset: Optional[Tensor], rows: Tensor, dtype: Any
) -> Tensor:
    """Weights of four bits, with a scale for each group of rows; of a byte the lower half is taken less 8."""
    groups, (count, width) = scale.shape[0], other.shape
    parts = other.float().view(groups, count // groups, width)
    totals = one.float().view(-1, groups, count // groups).transpose(0, 1) @ parts - 8 * parts.sum(1, True)
    result = (totals * scale.float()[:, None]).sum(0)
    if offset is not None:
        result = result + offset.float()
    return (result * rows.float().view(-1, 1)).to(_FLOATS.get(dtype, dtype))


def dequantized(weight: Tensor, scale: Optional[Tensor], offset: Optional[Tensor], dtype: Any) -> Tensor:
    """Return weights as a matrix unit takes them, rounded to halves as op-plugin's references do it."""
    if scale is None:
        return weight.float()
    inner = torch.half if dtype == torch.half else torch.float
    whole = weight.to(inner) if offset is None else weight.to(inner) + offset.to(inner)
    return (whole * scale.to(inner)).to(dtype).float()


def weight_quant_matmul(
    data: Tensor,
    weight: Tensor,
    scale: Tensor,
    antiquant_offset: Optional[Tensor] = None,
    quant_scale: Optional[Tensor] = None,
    quant_offset: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    antiquant_group_size: int = 0,
    inner_precise: int = 0,
    weight_dtype: Optional[int] = None,
) -> Tensor:
    """Multiply by quantized weights."""
    weight = _unpacked(weight) if weight.dtype == torch.int32 else weight
    options = {"weight": weight.dtype if weight.dtype != torch.int8 else None, "weight_dtype": weight_dtype}
    refuse("npu_weight_quant_batchmatmul", options, quant_scale=quant_scale)
    groups = max(1, antiquant_group_size)
    by, shift = (
        each.repeat_interleave(groups, 0)[: weight.shape[0]] if groups > 1 and each is not None else each
        for each in (scale, antiquant_offset)
    )
    result = data.float() @ dequantized(weight, by, shift, data.dtype)
    return (result if bias is None else result + bias.float()).to(data.dtype)


def _packed(weight: Tensor, inner_k_tiles: int = 0) -> Tensor:
    """Eight numbers of four bits in one of 32, the first in the lowest bits, with op-plugin's checks."""
    if not weight.is_contiguous():
        raise RuntimeError("weight should be contiguous")
    if weight.dim() not in (2, 3):
        raise RuntimeError(f"weight shape only support dim num 2/3, but it is {weight.dim()}")
    if weight.shape[-1] % 8:
        raise RuntimeError(f"weight last dim should be the multiple of 8, but it is {weight.shape[-1]}")
    floats = weight.dtype if weight.dtype != torch.int32 else None  # of four bits, which an Ascend950 has
    refuse("npu_convert_weight_to_int4pack", {"weight": floats})
    return _in_words(weight)


def _in_words(numbers: Tensor) -> Tensor:
    parts = (numbers.long() & 0xF).unflatten(-1, (-1, 8))
    return (parts << torch.arange(0, 32, 4, device=numbers.device)).sum(-1).int()


def _unpacked(weight: Tensor) -> Tensor:
    """Numbers of four bits; those of a transposed weight are packed along the other dimension."""
    dim = -1 if weight.is_contiguous() else -2
    parts = weight.movedim(dim, -1)[..., None] >> torch.arange(0, 32, 4, device=weight.device)
    numbers = (parts & 0xF).flatten(-2).movedim(-1, dim)
    return torch.where(numbers > 7, numbers - 16, numbers).to(torch.int8)


def _calibrated(
    data: Tensor,
    data_min: Tensor,
    data_max: Tensor,
    cumsum: Tensor,
    min_percentile: float,
    max_percentile: float,
    search_start: float,
    search_end: float,
    search_step: float,
    with_offset: bool,
) -> tuple[Tensor, Tensor]:
    """The scale, and offset, with the least loss among those around what a histogram suggests."""
    share = cumsum.float() / data.numel()
    least, width = data_min.float(), (data_max - data_min).float() / cumsum.numel()
    most = (share < max_percentile).sum() * width + least
    low = (share < 1 - min_percentile).sum() * width + least
    tries = torch.arange(search_start, search_end, search_step, device=data.device)
    if with_offset:
        low = low.clamp(max=0)
        scales = (most.clamp(min=0) * tries - low) / 255
        scales = torch.where(scales < torch.finfo(torch.float32).eps, 1, scales)
        offsets = -((low / scales).round() + 128)
    else:
        scales = torch.maximum(most.abs(), low.abs()) * tries / 127
        offsets = torch.zeros_like(scales)
    whole = data.float()
    losses = []
    for scale, offset in zip(scales, offsets):
        quantized = ((whole / scale).round() + offset).clamp(-128, 127)
        losses.append(((quantized - offset) * scale - whole).square().sum())
    best = torch.stack(losses).argmin()
    return scales[best].to(data_min.dtype).reshape(1), offsets[best].to(data_min.dtype).reshape(1)


def _quantized_scatter_in_place(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    quant_scales: Tensor,
    quant_zero_points: Optional[Tensor] = None,
    axis: int = -2,
    quant_axis: int = -1,
    reduce: str = "update",
    dst_type: Optional[int] = None,
    round_mode: Optional[str] = "rint",
) -> Tensor:
    """Quantize updates and write them behind their indices."""
    zero_points = None if quant_zero_points is None else quant_zero_points.flatten()
    whole = _quantize(updates, quant_scales.flatten(), zero_points, torch.int8, quant_axis)
    return arrangement.scatter_update_in_place(data, indices, whole, axis)


def _quantized_scatter(data: Tensor, *args: Any, **options: Any) -> Tensor:
    return _quantized_scatter_in_place(data.clone(), *args, **options)


def _group_quant(
    data: Tensor,
    scale: Tensor,
    group_index: Tensor,
    *,
    offset: Optional[Tensor] = None,
    dst_dtype: Any = None,
) -> Tensor:
    """Quantize rows by the scale of their group: `group_index` has where groups end."""
    refuse(
        "npu_group_quant",
        {"dst_dtype": dst_dtype if dst_dtype not in (None, torch.int8, torch.qint8, 1) else None},
    )
    rows = torch.arange(data.shape[0], device=data.device)
    group = torch.searchsorted(group_index.to(rows.dtype), rows, right=True)
    whole = data.float() * scale.float()[group]
    if offset is not None:
        whole = whole + offset.float()
    return whole.round().clamp(-128, 127).to(torch.int8)


def _swiglu_quant(
    data: Tensor,
    *,
    smooth_scales: Optional[Tensor] = None,
    offsets: Optional[Tensor] = None,
    group_index: Optional[Tensor] = None,
    activate_left: bool = False,
    quant_mode: int = 0,
    group_list_type: int = 0,
    dst_type: Any = None,
) -> tuple[Tensor, Tensor]:
    """A gated product, quantized by the scales given, or with mode 1 by 127 over each row's largest."""
    refuse("npu_swiglu_quant", {"dst_type": dst_type if dst_type not in (None, torch.int8, 1) else None})
    left, right = data.float().chunk(2, -1)
    whole = functional.silu(left) * right if activate_left else left * functional.silu(right)
    ends = group_index if group_index is None or not group_list_type else group_index.cumsum(0)
    shape = whole.shape
    rows = whole.reshape(-1, shape[-1])
    if ends is None:
        group = torch.zeros(rows.shape[0], dtype=torch.long, device=data.device)
    else:
        numbers = torch.arange(rows.shape[0], device=data.device)
        group = torch.searchsorted(ends.to(numbers.dtype), numbers, right=True).clamp(max=ends.numel() - 1)
    if smooth_scales is not None:
        rows = rows * smooth_scales.float().view(-1, smooth_scales.shape[-1])[group]
    if quant_mode == 0 and offsets is not None:
        rows = rows + offsets.float().view(-1, offsets.shape[-1])[group]
    scale = rows.new_empty(0)
    if quant_mode == 1:
        scale = 127 / rows.abs().amax(-1)
        rows = rows * scale[:, None]
        scale = scale.view(shape[:-1])
    return rows.round().clamp(-128, 127).to(torch.int8).view(shape), scale


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_anti_quant": _anti_quant,
    "npu_convert_weight_to_int4pack": _packed,
    "npu_dynamic_quant": _dynamic_quant,
    "npu_dynamic_quant_asymmetric": _dynamic_quant_asymmetric,
    "npu_group_quant": _group_quant,
    "npu_ifmr": _calibrated,
    "npu_quant_matmul": quant_matmul,
    "npu_quant_scatter": _quantized_scatter,
    "npu_quant_scatter_": _quantized_scatter_in_place,
    "npu_quantize": _quantize,
    "npu_swiglu_quant": _swiglu_quant,
    "npu_trans_quant_param": _trans_quant_param,
    "npu_weight_quant_batchmatmul": weight_quant_matmul,
}
