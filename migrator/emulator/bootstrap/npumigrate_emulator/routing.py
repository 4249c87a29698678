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


def _add_grouped_matmul(
    data: Tensor,
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = 2,
    group_list_type: Optional[int] = 0,
) -> Tensor:
    """Add to each group's matrix the product of its rows: the derivative of grouped weights."""
    options = {"transpose_weight": transpose_weight, "transpose_x": not transpose_x}
    refuse("npu_grouped_matmul_add_", options, group_type=group_type - 2)
    ends = (group_list.cumsum(0) if group_list_type else group_list).tolist()
    parts = [x[start:end].float().t() @ weight[start:end].float() for start, end in zip([0, *ends], ends)]
    return data.add_(torch.stack(parts).view(data.shape).to(data.dtype))


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


def _gating_v2(
    x: Tensor,
    *,
    k: int = 1,
    finished: Optional[Tensor] = None,
    renorm: Optional[int] = 0,
    output_softmax: Optional[bool] = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best k of a softmax; with renorm a softmax over the best k."""
    weights = x.float() if renorm else x.float().softmax(-1)
    values, experts = weights.sort(dim=-1, descending=True, stable=True)
    values, experts = values[..., :k], experts[..., :k]
    if renorm:
        values = values.softmax(-1)
    if finished is not None:
        experts = experts.masked_fill(finished.bool().view(experts.shape[:-1])[..., None], x.shape[-1])
    whole = weights if output_softmax and not renorm else weights.new_empty(0)
    return values.to(x.dtype), experts.int(), whole


def _gating_by_groups(
    x: Tensor,
    k: int,
    *,
    bias: Optional[Tensor] = None,
    input_ids: Optional[Tensor] = None,
    tid2eid: Optional[Tensor] = None,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best k experts of the best groups; the bias chooses, and does not weigh."""
    refuse("npu_moe_gating_top_k", {"renorm": renorm, "input_ids": input_ids, "tid2eid": tid2eid})
    weights = x.float().sigmoid() if norm_type else x.float().softmax(-1)
    chosen = weights if bias is None else weights + bias.float()
    if group_count > 1:
        grouped = chosen.view(x.shape[0], group_count, -1)
        by_group = grouped.topk(2, -1)[0].sum(-1) if group_select_mode else grouped.amax(-1)
        best = by_group.sort(dim=-1, descending=True, stable=True)[1][:, :k_group]
        out = torch.ones_like(by_group, dtype=torch.bool).scatter(1, best, False)
        chosen = grouped.masked_fill(out[..., None], float("-inf")).view(x.shape)
    experts = chosen.sort(dim=-1, descending=True, stable=True)[1][:, :k]
    values = weights.gather(1, experts)
    if norm_type:
        values = values / (values.sum(-1, keepdim=True) + eps)
    whole = weights if out_flag else weights.new_empty(0)
    return (values * routed_scaling_factor).to(x.dtype), experts.int(), whole


def _route(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Optional[Tensor] = None,
    offset: Optional[Tensor] = None,
    active_num: int = -1,
    expert_capacity: int = -1,
    expert_num: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 0,
    expert_tokens_num_flag: bool = False,
    quant_mode: int = -1,
    active_expert_range: Optional[list[int]] = None,
    row_idx_type: int = 0,
    x_dtype: Optional[int] = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows in the order of their experts, those of other experts than the active ones are left out."""
    refuse(
        "npu_moe_init_routing_v2",
        {"drop_pad_mode": drop_pad_mode, "x_dtype": x_dtype},
        quant_mode=quant_mode if quant_mode not in (-1, 0, 1) else None,
    )
    first, last = active_expert_range or (0, expert_num)
    each = expert_idx.shape[-1]
    flat = expert_idx.flatten().long()
    inside = (flat >= first) & (flat < last)
    experts, order = torch.where(flat < first, torch.iinfo(torch.int64).max, flat).sort(stable=True)
    count = int(inside.sum())
    if row_idx_type == 1:
        places = order.int()
    else:
        places = torch.full_like(order, -1, dtype=torch.int32)
        places[order[:count]] = torch.arange(count, dtype=torch.int32, device=x.device)
    sizes = torch.bincount(flat[inside] - first, minlength=last - first)
    tokens = sizes.cumsum(0) if expert_tokens_num_type == 0 else sizes
    if expert_tokens_num_type == 2:  # the numbers of the experts that have any, and how many
        busy = sizes.nonzero()[:, 0]
        tokens = sizes.new_zeros(max(expert_num, busy.numel()), 2)
        tokens[: busy.numel()] = torch.stack((busy + first, sizes[busy]), 1)
    if not expert_tokens_num_flag:
        tokens = tokens.new_empty(0)
    kept = min(active_num, flat.numel()) if active_num > 0 else flat.numel()
    used = min(kept, count)
    sources = order[:used] // each
    rows = x.new_zeros(kept, x.shape[1])
    rows[:used] = x[sources]
    scales = torch.zeros(kept, dtype=torch.float32, device=x.device)
    if quant_mode == 0 and scale is not None:
        whole = rows.float() * scale.float().flatten()[0]
        whole = whole if offset is None else whole + offset.float().flatten()[0]
        rows = whole.round().clamp(-128, 127).to(torch.int8)
        rows[used:] = 0
    elif quant_mode == 1:
        whole = rows[:used].float()
        if scale is not None and used:
            by = scale.float().view(-1, x.shape[1])
            whole = whole * (by[0] if by.shape[0] == 1 else by[experts[:used] - first])
        scales[:used] = whole.abs().amax(-1) / 127 if used else scales[:used]
        quantized = torch.zeros(kept, x.shape[1], dtype=torch.int8, device=x.device)
        quantized[:used] = (whole / scales[:used, None]).round().clamp(-128, 127).to(torch.int8)
        rows = quantized
    elif scale is not None:
        scales[:used] = scale.float()[sources]
    return rows, places, tokens, scales


def _route_quantized(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Optional[Tensor] = None,
    offset: Optional[Tensor] = None,
    active_num: int = 1024,
    expert_capacity: int = 0,
    expert_num: int = 256,
    drop_pad_mode: int = 0,
    expert_tokens_num_mode: int = 0,
    expert_tokens_before_capacity_flag: bool = False,
    quant_mode: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    refuse("npu_moe_init_routing_quant", {"before_capacity": expert_tokens_before_capacity_flag})
    rows, places, tokens, scales = _route(
        x, expert_idx, scale=scale, offset=offset, active_num=active_num, drop_pad_mode=drop_pad_mode,
        expert_tokens_num_type=0 if expert_tokens_num_mode == 1 else 1,
        expert_tokens_num_flag=expert_tokens_num_mode > 0, quant_mode=quant_mode,
        active_expert_range=[0, expert_num],
    )  # fmt: skip
    return rows, places, tokens.int(), tokens.new_empty(0, dtype=torch.int32), scales


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


def _re_route(
    tokens: Tensor,
    expert_token_num_per_rank: Tensor,
    *,
    per_token_scales: Optional[Tensor] = None,
    expert_token_num_type: int = 1,
    idx_type: int = 0,
    tokens_dtype: Optional[int] = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """From ranks with the rows of their experts to experts with the rows of their ranks."""
    refuse("npu_moe_re_routing", {"tokens_dtype": tokens_dtype})
    ranks, experts = expert_token_num_per_rank.shape
    numbers = torch.arange(ranks * experts, device=tokens.device)
    pairs = numbers.repeat_interleave(expert_token_num_per_rank.flatten().long())[: len(tokens)]
    order = (pairs % experts * ranks + pairs // experts).argsort(stable=True)

    def moved(rows: Tensor) -> Tensor:
        result = torch.zeros_like(rows)
        result[: len(order)] = rows[order]
        return result

    places = torch.zeros(len(tokens), dtype=torch.int32, device=tokens.device)
    places[: len(order)] = order.argsort() if idx_type else order
    counts = expert_token_num_per_rank.sum(0, dtype=expert_token_num_per_rank.dtype)
    scales = (
        tokens.new_ones(len(tokens), dtype=torch.float32) if per_token_scales is None else per_token_scales
    )
    ends = counts.cumsum(0, dtype=counts.dtype)
    return moved(tokens), moved(scales), places, counts if expert_token_num_type else ends


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
    "npu_grouped_matmul_add": lambda data, *args, **options: _add_grouped_matmul(
        data.clone(), *args, **options
    ),
    "npu_grouped_matmul_add_": _add_grouped_matmul,
    "npu_moe_compute_expert_tokens": _expert_tokens,
    "npu_moe_finalize_routing": _finalize_routing,
    "npu_moe_gating_top_k": _gating_by_groups,
    "npu_moe_gating_top_k_softmax": _gating,
    "npu_moe_gating_top_k_softmax_v2": _gating_v2,
    "npu_moe_init_routing": _init_routing,
    "npu_moe_init_routing_quant": _route_quantized,
    "npu_moe_init_routing_v2": _route,
    "npu_moe_re_routing": _re_route,
    "npu_moe_token_permute": _permute,
    "npu_moe_token_unpermute": _unpermute,
}
