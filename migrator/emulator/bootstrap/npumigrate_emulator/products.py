"""Products that are joined with collectives of HCCL, and feed-forward layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator import quantization
from npumigrate_emulator.routing import refuse

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "fastgelu": lambda data: data * torch.sigmoid(1.702 * data),
    "silu": functional.silu,
}


def _group(hcom: str) -> Any:
    """Return the group of torch.distributed that HCCL knows by a name."""
    distributed: Any = torch.distributed.distributed_c10d
    rank = torch.distributed.get_rank()
    for group in distributed._world.pg_map:
        backend = group._get_backend(torch.device("npu"))
        if backend.get_hccl_comm_name(rank) == hcom:
            return group
    raise RuntimeError(f"npumigrate emulate: no process group of this program has the name {hcom!r}")


def _product(
    one: Tensor,
    other: Tensor,
    bias: Optional[Tensor],
    scales: tuple[Optional[Tensor], Optional[Tensor]],
    dtype: Any,
) -> Tensor:
    """Multiply, where the factors are integers with the scales of their rows and columns."""
    if one.dtype == torch.int8:
        rows, columns = scales
        ones = torch.ones(1, device=one.device)
        return quantization.quant_matmul(
            one, other, ones if columns is None else columns, bias=bias,
            pertoken_scale=None if rows is None else rows.flatten(), output_dtype=dtype or torch.float16,
        )  # fmt: skip
    result = one.float() @ other.float()
    if bias is not None:
        result = result + bias.float()
    return result.to(dtype or one.dtype)


def _all_reduce(
    x1: Tensor,
    x2: Tensor,
    hcom: str,
    *,
    reduce_op: str = "sum",
    bias: Optional[Tensor] = None,
    antiquant_scale: Optional[Tensor] = None,
    antiquant_offset: Optional[Tensor] = None,
    x3: Optional[Tensor] = None,
    dequant_scale: Optional[Tensor] = None,
    pertoken_scale: Optional[Tensor] = None,
    antiquant_group_size: int = 0,
    comm_turn: int = 0,
    comm_mode: Optional[str] = None,
    **others: Any,
) -> Tensor:
    refuse("npu_mm_all_reduce_base", others)
    if antiquant_scale is not None:
        result = quantization.weight_quant_matmul(
            x1, x2, antiquant_scale, antiquant_offset, bias=bias, antiquant_group_size=antiquant_group_size
        )
    else:
        halves = dequant_scale is not None and dequant_scale.dtype == torch.bfloat16
        result = _product(x1, x2, bias, (pertoken_scale, dequant_scale), torch.bfloat16 if halves else None)
    if x3 is not None:
        result = result + x3
    torch.distributed.all_reduce(result, group=_group(hcom))
    return result


def _all_gather(
    data: Tensor,
    x2: Tensor,
    hcom: str,
    world_size: int,
    *,
    bias: Optional[Tensor] = None,
    x1_scale: Optional[Tensor] = None,
    x2_scale: Optional[Tensor] = None,
    gather_index: int = 0,
    gather_output: bool = True,
    comm_turn: int = 0,
    output_dtype: Any = None,
    comm_mode: Optional[str] = None,
) -> tuple[Tensor, Tensor]:
    refuse("npu_all_gather_base_mm", {"gather_index": gather_index})
    group = _group(hcom)

    def gathered(part: Tensor) -> Tensor:
        whole = part.new_empty(world_size * part.shape[0], *part.shape[1:])
        torch.distributed.all_gather_into_tensor(whole, part.contiguous(), group=group)
        return whole

    whole = gathered(data)
    rows = None if x1_scale is None else gathered(x1_scale)
    result = _product(whole, x2, bias, (rows, x2_scale), output_dtype)
    return result, whole if gather_output else data.new_empty(0)


def _reduce_scatter(
    data: Tensor,
    x2: Tensor,
    hcom: str,
    world_size: int,
    *,
    reduce_op: str = "sum",
    bias: Optional[Tensor] = None,
    x1_scale: Optional[Tensor] = None,
    x2_scale: Optional[Tensor] = None,
    comm_turn: int = 0,
    output_dtype: Any = None,
    comm_mode: Optional[str] = None,
) -> Tensor:
    whole = _product(data, x2, bias, (x1_scale, x2_scale), output_dtype)
    result = whole.new_empty(whole.shape[0] // world_size, *whole.shape[1:])
    torch.distributed.reduce_scatter_tensor(result, whole, group=_group(hcom))
    return result


def _feed_forward(
    x: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    activation: str,
    *,
    expert_tokens: Optional[list[int]] = None,
    expert_tokens_index: Optional[list[int]] = None,
    bias1: Optional[Tensor] = None,
    bias2: Optional[Tensor] = None,
    scale: Optional[Tensor] = None,
    offset: Optional[Tensor] = None,
    deq_scale1: Optional[Tensor] = None,
    deq_scale2: Optional[Tensor] = None,
    antiquant_scale1: Optional[Tensor] = None,
    antiquant_scale2: Optional[Tensor] = None,
    antiquant_offset1: Optional[Tensor] = None,
    antiquant_offset2: Optional[Tensor] = None,
    inner_precise: Optional[int] = None,
    output_dtype: Any = None,
) -> Tensor:
    """Two products, each expert's rows with its weights; of quantized weights, or of integers with scales."""
    refuse("npu_ffn", {}, activation=activation if activation not in _ACTIVATIONS else None)
    sizes = expert_tokens
    if expert_tokens_index is not None:
        ends = expert_tokens_index
        sizes = [end - start for start, end in zip([0, *ends], ends)]
    dtype = output_dtype or (torch.float16 if x.dtype == torch.int8 else x.dtype)
    weights = quantization.dequantized

    def layer(rows: Tensor, expert: Optional[int]) -> Tensor:
        def of(tensor: Optional[Tensor]) -> Any:
            return tensor if tensor is None or expert is None else tensor[expert]

        first, second, before, after = of(weight1), of(weight2), of(bias1), of(bias2)
        if scale is not None:
            inner = quantization.quant_matmul(rows, first, of(deq_scale1), bias=before, output_dtype=dtype)
            inner = _ACTIVATIONS[activation](inner).float() * of(scale).float()
            inner = inner if offset is None else inner + of(offset).float()
            inner = inner.round().clamp(-128, 127).to(torch.int8)
            return quantization.quant_matmul(inner, second, of(deq_scale2), bias=after, output_dtype=dtype)
        inner = rows.float() @ weights(first, of(antiquant_scale1), of(antiquant_offset1), dtype)
        inner = _ACTIVATIONS[activation](inner if before is None else inner + before.float()).to(dtype)
        outer = inner.float() @ weights(second, of(antiquant_scale2), of(antiquant_offset2), dtype)
        return (outer if after is None else outer + after.float()).to(dtype)

    if sizes is None:
        return layer(x, None)
    return torch.cat([layer(rows, expert) for expert, rows in enumerate(x.split(list(sizes)))])


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_all_gather_base_mm": _all_gather,
    "npu_ffn": _feed_forward,
    "npu_mm_all_reduce_base": _all_reduce,
    "npu_mm_reduce_scatter_base": _reduce_scatter,
}
