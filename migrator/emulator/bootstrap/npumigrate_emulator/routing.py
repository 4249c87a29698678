"""Mixtures of experts: grouped products and routing, as the references in op-plugin's tests define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    0: lambda data: data,
    1: functional.relu,
    2: lambda data: functional.gelu(data, approximate="tanh"),
    4: lambda data: data * torch.sigmoid(1.702 * data),
    5: functional.silu,
}


def _grouped_matmul(
    x: list[Tensor],
    weight: list[Tensor],
    *,
    bias: Optional[list[Tensor]] = None,
    group_list: Tensor | list[int] | None = None,
    split_item: Optional[int] = 0,
    group_type: Optional[int] = None,
    group_list_type: Optional[int] = 0,
    act_type: Optional[int] = 0,
    tuning_config: Optional[list[int]] = None,
    output_dtype: Any = None,
    **quantized: Any,
) -> list[Tensor]:
    """Multiply rows by the weights of their group: `group_list` has the groups' ends, or type 1 sizes."""
    refuse(
        "npu_grouped_matmul", quantized, group_type=group_type if group_type not in (None, -1, 0) else None
    )
    refuse("npu_grouped_matmul", {}, group_list_type=group_list_type if group_list_type == 2 else None)
    weights = [part for each in weight for part in (each.unbind(0) if each.dim() == 3 else (each,))]
    biases = [part for each in bias or () for part in (each.unbind(0) if each.dim() == 2 else (each,))]
    rows = list(x)
    if len(rows) == 1 and len(weights) > 1:
        given = [int(value) for value in group_list] if group_list is not None else []
        ends = given if not group_list_type else torch.tensor(given).cumsum(0).tolist()
        starts = [0, *ends[:-1]]
        rows = [x[0][start:end] for start, end in zip(starts, ends)]
    results = []
    for index, (each, by) in enumerate(zip(rows, weights)):
        product = each.float() @ by.float()
        if index < len(biases):
            product = product + biases[index].float()
        results.append(_ACTIVATIONS[act_type or 0](product).to(each.dtype))
    return [torch.cat(results)] if split_item in (2, 3) else results


def _init_routing(
    x: Tensor, row_idx: Tensor, expert_idx: Tensor, active_num: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows, each = expert_idx.shape
    experts, order = expert_idx.flatten().sort(stable=True)
    sources = row_idx.flatten()[order].long()
    places = torch.empty_like(sources)
    places[sources] = torch.arange(sources.numel(), device=x.device)
    active = min(active_num, rows) * each
    return x[sources[:active] % rows], places.int(), experts.int()


def _finalize_routing(
    rows: Tensor,
    skip1: Optional[Tensor],
    skip2: Optional[Tensor],
    bias: Optional[Tensor],
    scales: Optional[Tensor],
    places: Tensor,
    experts: Optional[Tensor],
    drop_pad_mode: Optional[int] = 0,
    k: Optional[int] = 1,
) -> Tensor:
    width = rows.shape[-1]
    each = scales.shape[1] if scales is not None else 1
    count = places.numel() // each
    flat = rows.reshape(-1, width)
    from_rows = places.view(each, count) if (drop_pad_mode or 0) in (0, 1) else places.view(count, each).t()
    result = torch.zeros(count, width, dtype=torch.float32, device=rows.device)
    for skip in (skip1, skip2):
        if skip is not None:
            result = result + skip.float()
    for index in range(each):
        place = from_rows[index].long()
        part = torch.where((place >= 0)[:, None], flat[place.clamp(min=0)].float(), 0)
        if bias is not None and experts is not None:
            part = part + bias[experts[:, index].long()].float()
        result = result + (part if scales is None else part * scales[:, index : index + 1].float())
    return result.to(rows.dtype)


def _expert_tokens(sorted_experts: Tensor, count: int) -> Tensor:
    """Where the rows of each expert end."""
    numbers = torch.arange(count, device=sorted_experts.device, dtype=sorted_experts.dtype)
    return torch.searchsorted(sorted_experts, numbers, right=True).to(sorted_experts.dtype)


def _gating(x: Tensor, finished: Optional[Tensor] = None, k: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    weights = x.float().softmax(-1)
    values, experts = weights.sort(dim=-1, descending=True, stable=True)
    values, experts = values[..., :k].to(x.dtype), experts[..., :k]
    if finished is not None:
        experts = experts.masked_fill(finished.bool()[..., None], x.shape[-1])
    rows = torch.arange(experts.numel(), device=x.device, dtype=torch.int32)
    return values, experts.int(), rows.view(k, -1).t().reshape(experts.shape)


def _permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: Optional[int] = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    each = indices.shape[1] if indices.dim() > 1 else 1
    order = indices.flatten().argsort(stable=True)
    places = order.argsort(stable=True)
    count = num_out_tokens if num_out_tokens else order.numel()
    kept = order[: count if count > 0 else order.numel() + count]
    return tokens.index_select(0, kept // each), places.int()


def _unpermute(
    permuted: Tensor,
    sorted_indices: Tensor,
    probs: Optional[Tensor] = None,
    padded_mode: bool = False,
    restore_shape: Optional[list[int]] = None,
) -> Tensor:
    each = probs.shape[1] if probs is not None else 1
    places = sorted_indices.long()
    width = permuted.shape[-1]
    there = places < permuted.shape[0]
    rows = torch.where(there[:, None], permuted[places.clamp(max=permuted.shape[0] - 1)], 0).view(
        -1, each, width
    )
    if probs is not None:
        rows = rows * probs[..., None]
    return rows.sum(1).to(permuted.dtype)


def refuse(operator: str, options: dict[str, Any], **others: Any) -> None:
    """Raise where an option is given that this emulator has not."""
    for name, value in {**options, **others}.items():
        given = value is not None and not (isinstance(value, (int, float)) and not value)
        if given:
            raise NotImplementedError(
                f"npumigrate emulate: the emulator lacks {operator} with {name}; an NPU may have it"
            )


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_grouped_matmul": _grouped_matmul,
    "npu_moe_compute_expert_tokens": _expert_tokens,
    "npu_moe_finalize_routing": _finalize_routing,
    "npu_moe_gating_top_k_softmax": _gating,
    "npu_moe_init_routing": _init_routing,
    "npu_moe_token_permute": _permute,
    "npu_moe_token_unpermute": _unpermute,
}
