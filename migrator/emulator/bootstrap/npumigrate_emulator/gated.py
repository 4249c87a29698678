"""Quantized products by groups, gated and quantized again: ``npu_grouped_matmul_swiglu_quant``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator.routing import refuse


def _grouped_swiglu_quant(
    data: Tensor,
    weight: Tensor,
    group_list: Tensor,
    weight_scale: Tensor,
    x_scale: Tensor,
    *,
    bias: Optional[Tensor] = None,
    offset: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Multiply the rows of each group by its weights, gate the result, and quantize each of its rows.

    `group_list` has where groups end; rows behind the last are zeros. Weights in FRACTAL_NZ may be given with
    five dimensions: their elements keep their order here.
    """
    name = "npu_grouped_matmul_swiglu_quant"
    kind = None if weight.dtype == torch.int8 else weight.dtype
    refuse(name, {"bias": bias, "offset": offset, "weight": kind})
    width = weight_scale.shape[-1]
    weights = weight.reshape(weight_scale.shape[0], data.shape[1], width)
    result = data.new_zeros((data.shape[0], width // 2), dtype=torch.int8)
    scales = x_scale.new_zeros(data.shape[0])
    start = 0
    for group, end in enumerate(group_list.tolist()):
        rows = slice(start, end)
        start = end
        total = (data[rows].cpu().int() @ weights[group].cpu().int()).to(data.device).float()
        gate, up = (total * weight_scale[group].float() * x_scale[rows].float()[:, None]).chunk(2, -1)
        whole = functional.silu(gate) * up
        scale = whole.abs().amax(-1) / 127 if end > rows.start else scales[rows]
        result[rows], scales[rows] = (whole / scale[:, None]).round().to(torch.int8), scale
    return result, scales, data.new_empty((), dtype=torch.float32)


def _grouped_swiglu_quant_v2(
    data: Tensor,
    weight: list[Tensor],
    weight_scale: list[Tensor],
    x_scale: Tensor,
    group_list: Tensor,
    *,
    group_list_type: Optional[int] = 0,
    dequant_dtype: Any = 0,
    quant_dtype: Any = 1,
    tuning_config: Any = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """The same, with one weight in a list; `group_list_type` 1 has how many rows groups have."""
    name = "npu_grouped_matmul_swiglu_quant_v2"
    many = len(weight) if len(weight) > 1 else None
    kind = quant_dtype if quant_dtype not in (None, 1, torch.int8) else None
    refuse(name, {**others, "weight": many, "quant_dtype": kind})
    ends = group_list.cumsum(0) if group_list_type else group_list
    return _grouped_swiglu_quant(data, weight[0], ends, weight_scale[0], x_scale)[:2]


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_grouped_matmul_swiglu_quant": _grouped_swiglu_quant,
    "npu_grouped_matmul_swiglu_quant_v2": _grouped_swiglu_quant_v2,
}
