"""Attention to blocks of keys that a mask chooses, as op-plugin's tests define it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator.routing import refuse

_HIDDEN = -1e10  # the score of what the mask hides


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_sparse_mask: Tensor,
    block_shape: list[int],
    *,
    q_input_layout: str = "TND",
    kv_input_layout: str = "TND",
    num_key_value_heads: int = 1,
    scale_value: float = 0.0,
    inner_precise: int = 1,
    actual_seq_lengths: Optional[list[int]] = None,
    actual_seq_lengths_kv: Optional[list[int]] = None,
    softmax_lse_flag: Optional[int] = 0,
) -> tuple[Tensor, Tensor]:
    out = torch.zeros_like(query)
    sums = torch.zeros(*query.shape[:-1], 1, device=query.device)
    lengths = actual_seq_lengths, actual_seq_lengths_kv
    for index, rows, columns in _sequences((q_input_layout, kv_input_layout), query, key, *lengths):
        parts = _of_heads(query[rows], key[columns], value[columns], query.dim() == 3)
        scores = _scores(parts[0], parts[1], block_sparse_mask[index], block_shape, scale_value)
        found = _heads_first(scores.softmax(-1) @ parts[2], query.dim() == 3)
        out[rows] = found.to(out.dtype)
        sums[rows] = _heads_first(scores.logsumexp(-1, keepdim=True), query.dim() == 3)
    return out, sums


def _backward(
    d_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_out: Tensor,
    softmax_lse: Tensor,
    block_sparse_mask: Tensor,
    block_shape: Optional[list[int]],
    actual_seq_lengths: Optional[list[int]],
    actual_seq_lengths_kv: Optional[list[int]],
    q_input_layout: str,
    kv_input_layout: str,
    num_key_value_heads: int,
    scale_value: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The weights are those that the forward pass's sums give."""
    lengths = actual_seq_lengths, actual_seq_lengths_kv
    found = tuple(torch.zeros(data.shape, device=data.device) for data in (query, key, value))
    by_tokens = query.dim() == 3
    for index, rows, columns in _sequences((q_input_layout, kv_input_layout), query, key, *lengths):
        queries, keys, values = _of_heads(query[rows], key[columns], value[columns], by_tokens)
        gradient, out, sums = (
            _heads_first(data[rows], by_tokens).float() for data in (d_out, attention_out, softmax_lse)
        )
        scores = _scores(queries, keys, block_sparse_mask[index], block_shape or [128, 128], scale_value)
        weights = (scores - sums).exp()
        of_scores = weights * (gradient @ values.transpose(1, 2) - (gradient * out).sum(-1, keepdim=True))
        of_scores = of_scores * scale_value
        each = len(queries) // key.shape[1]
        parts = (
            of_scores @ keys,
            (of_scores.transpose(1, 2) @ queries).unflatten(0, (-1, each)).sum(1),
            (weights.transpose(1, 2) @ gradient).unflatten(0, (-1, each)).sum(1),
        )
        for total, at, part in zip(found, (rows, columns, columns), parts):
            total[at] = _heads_first(part, by_tokens)
    return found[0].to(query.dtype), found[1].to(key.dtype), found[2].to(value.dtype)


_Place = tuple[Any, ...]


def _sequences(
    layouts: tuple[str, str],
    query: Tensor,
    key: Tensor,
    lengths: Optional[list[int]],
    lengths_kv: Optional[list[int]],
) -> Iterator[tuple[int, _Place, _Place]]:
    """Where each sequence lies among queries and keys; the lists have the length of each."""
    other = next((each for each in layouts if each not in ("TND", "BNSD")), None)
    refuse("npu_block_sparse_attention", {"layout": other})
    if query.dim() == 3:
        start = start_kv = 0
        for index, (rows, columns) in enumerate(
            zip(lengths or [len(query)], lengths_kv or [len(key)], strict=True)
        ):
            yield index, (slice(start, start + rows),), (slice(start_kv, start_kv + columns),)
            start, start_kv = start + rows, start_kv + columns
        return
    for index in range(len(query)):
        rows = lengths[index] if lengths else query.shape[2]
        columns = lengths_kv[index] if lengths_kv else key.shape[2]
        yield index, (index, slice(None), slice(rows)), (index, slice(None), slice(columns))


def _heads_first(data: Tensor, by_tokens: bool) -> Tensor:
    return data.transpose(0, 1) if by_tokens else data


def _of_heads(query: Tensor, key: Tensor, value: Tensor, by_tokens: bool) -> tuple[Tensor, Tensor, Tensor]:
    """In float; each head of keys as often as heads of queries share it."""
    queries, keys, values = (_heads_first(data, by_tokens).float() for data in (query, key, value))
    each = len(queries) // len(keys)
    return queries, keys.repeat_interleave(each, 0), values.repeat_interleave(each, 0)


def _scores(query: Tensor, key: Tensor, mask: Tensor, block_shape: list[int], scale: float) -> Tensor:
    chosen = mask.bool().repeat_interleave(block_shape[0], 1).repeat_interleave(block_shape[1], 2)
    scores = query @ key.transpose(1, 2) * scale
    return scores.masked_fill(~chosen[:, : query.shape[1], : key.shape[1]], _HIDDEN)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_block_sparse_attention": _forward,
    "npu_block_sparse_attention_backward": _backward,
}
