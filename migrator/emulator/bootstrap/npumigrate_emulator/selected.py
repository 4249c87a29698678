"""Attention of each query to the blocks of keys that were selected for it: ``npu_nsa_select_attention``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator.routing import refuse


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    topk_indices: Tensor,
    scale_value: float,
    head_num: int,
    select_block_size: int,
    select_block_count: int,
    *,
    atten_mask: Optional[Tensor] = None,
    actual_seq_qlen: Optional[list[int]] = None,
    actual_seq_kvlen: Optional[list[int]] = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Tensors are (tokens, heads, width); `topk_indices` numbers blocks of the query's own sequence.

    Returns attention, and each row's largest score and sum of exponents, eight times.
    """
    refuse("npu_nsa_select_attention", {"atten_mask": atten_mask})
    rows, heads = query.shape[0], key.shape[1]
    ends, key_ends = list(actual_seq_qlen or [rows]), list(actual_seq_kvlen or [key.shape[0]])
    starts = [0, *key_ends]
    inside = torch.arange(select_block_size, device=query.device)
    every = torch.arange(heads, device=query.device)[:, None]
    results = []
    for row in range(rows):
        sequence = sum(end <= row for end in ends)
        start, end = starts[sequence], starts[sequence + 1]
        places = (topk_indices[row].long()[..., None] * select_block_size + inside).flatten(1) + start
        hidden = (places >= end)[:, None]
        places = places.clamp(max=end - 1)
        scores = query[row].view(heads, -1, query.shape[2]).float() @ key[places, every].float().mT
        scores = (scores * scale_value).masked_fill(hidden, -torch.inf)
        largest = scores.amax(-1, keepdim=True)
        weights = (scores - largest).exp()
        total = weights.sum(-1, keepdim=True)
        chosen = value[places, every].float()
        results.append(((weights / total).to(query.dtype).float() @ chosen, largest, total))
    out, most, sums = (torch.stack(each).flatten(1, 2) for each in zip(*results))
    return out.to(query.dtype), most.expand(-1, -1, 8), sums.expand(-1, -1, 8)


def _gradients(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_out: Tensor,
    softmax_max: Tensor,
    softmax_sum: Tensor,
    *args: Any,
    **options: Any,
) -> tuple[Tensor, ...]:
    given = [each.detach().requires_grad_() for each in (query, key, value)]
    with torch.enable_grad():
        out = _attend(given[0], given[1], given[2], *args, **options)[0]
        found: tuple[Tensor, ...] = torch.autograd.grad(out, given, grad)
    return found


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_nsa_select_attention": _attend,
    "npu_nsa_select_attention_grad": _gradients,
}
