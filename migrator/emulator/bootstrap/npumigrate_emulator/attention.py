"""``npu_fusion_attention``: attention as torch_npu's documents define it, in plain torch."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

_EVERYTHING = 2147483647
# sparse_mode
_BAND_OF_TOKENS, _WHOLE_MASK, _CAUSAL_LEFT_TOP, _CAUSAL_RIGHT_BOTTOM, _BAND = range(5)

Result = tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]


def fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Optional[Tensor] = None,
    padding_mask: Optional[Tensor] = None,
    atten_mask: Optional[Tensor] = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _EVERYTHING,
    next_tockens: int = _EVERYTHING,
    inner_precise: int = 0,
    prefix: Optional[list[int]] = None,
    actual_seq_qlen: Optional[list[int]] = None,
    actual_seq_kvlen: Optional[list[int]] = None,
    sparse_mode: int = 0,
    *_: Any,
    **others: Any,
) -> Result:
    """Return attention, its softmax's maxima and sums, and the numbers that belong to a dropout mask."""
    if sparse_mode > _BAND or prefix is not None or others.get("sink") is not None:
        raise NotImplementedError(
            "npumigrate emulate: the emulator lacks npu_fusion_attention with prefix, sink, this sparse_mode"
        )

    def attend(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = _hidden(queries, keys, atten_mask, sparse_mode, pre_tockens, next_tockens)
        return _attend(queries, keys, values, pse, hidden, scale, keep_prob)

    if input_layout == "TND":  # sequences one after the other; the lists say where each ends
        ends_q, ends_k = actual_seq_qlen or [query.shape[0]], actual_seq_kvlen or [key.shape[0]]
        parts = []
        for start_q, end_q, start_k, end_k in zip([0, *ends_q], ends_q, [0, *ends_k], ends_k):
            cut = (query[start_q:end_q], key[start_k:end_k], value[start_k:end_k])
            parts.append(attend(*(part.transpose(0, 1).unsqueeze(0) for part in cut)))
        joined = [torch.cat([part[i][0].transpose(0, 1) for part in parts]) for i in range(3)]
        return (*joined, query.new_empty(0), 0, 0, 0)
    heads = {"query": head_num, "key": _key_heads(query, key, head_num, input_layout)}
    out, largest, total = attend(
        _split(query, heads["query"], input_layout),
        _split(key, heads["key"], input_layout),
        _split(value, heads["key"], input_layout),
    )
    return _join(out, input_layout), largest, total, query.new_empty(0), 0, 0, 0


def fusion_attention_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    *,
    query_rope: Optional[Tensor] = None,
    key_rope: Optional[Tensor] = None,
    pre_tokens: int = _EVERYTHING,
    next_tokens: int = _EVERYTHING,
    pse_type: int = 1,
    **others: Any,
) -> Result:
    """As above, with other names for its arguments."""
    if query_rope is not None or key_rope is not None or pse_type != 1:
        raise NotImplementedError(
            "npumigrate emulate: the emulator lacks npu_fusion_attention_v2 with rope or this pse_type"
        )
    return fusion_attention(
        query, key, value, head_num, input_layout, pre_tockens=pre_tokens, next_tockens=next_tokens, **others
    )


def _split(data: Tensor, heads: int, layout: str) -> Tensor:
    """Bring a tensor to batch, head, sequence, width."""
    if layout == "BSH":
        return data.unflatten(-1, (heads, -1)).transpose(1, 2)
    if layout == "SBH":
        return data.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
    return data.transpose(1, 2) if layout == "BSND" else data


def _join(data: Tensor, layout: str) -> Tensor:
    if layout == "BSH":
        return data.transpose(1, 2).flatten(2)
    if layout == "SBH":
        return data.permute(2, 0, 1, 3).flatten(2)
    return data.transpose(1, 2) if layout == "BSND" else data


def _key_heads(query: Tensor, key: Tensor, head_num: int, layout: str) -> int:
    if layout in ("BSH", "SBH"):
        return int(key.shape[-1] // (query.shape[-1] // head_num))
    return int(key.shape[1 if layout == "BNSD" else 2])


def _hidden(
    query: Tensor, key: Tensor, mask: Optional[Tensor], mode: int, before: int, after: int
) -> Optional[Tensor]:
    """Return which keys a query does not see. A mask is True where it hides; modes 2 to 4 make their own."""
    rows, columns = query.shape[-2], key.shape[-2]
    if mode in (_BAND_OF_TOKENS, _WHOLE_MASK):
        hidden = None if mask is None else mask.bool()
        if mode == _BAND_OF_TOKENS and hidden is not None and (before < columns or after < columns):
            hidden = hidden | _outside(rows, columns, before, after, 0, query.device)
        return hidden
    shift = 0 if mode == _CAUSAL_LEFT_TOP else columns - rows
    if mode != _BAND:
        before, after = columns, 0
    return _outside(rows, columns, before, after, shift, query.device)


def _outside(rows: int, columns: int, before: int, after: int, shift: int, device: torch.device) -> Tensor:
    distance = torch.arange(columns, device=device) - (torch.arange(rows, device=device)[:, None] + shift)
    return (distance < -before) | (distance > after)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Optional[Tensor],
    hidden: Optional[Tensor],
    scale: float,
    keep_prob: float,
) -> tuple[Tensor, Tensor, Tensor]:
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query.float() @ key.float().transpose(-1, -2)
    if bias is not None:
        scores = scores + bias.float() / scale if scale else scores
    scores = scores * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(torch.float32).min)
    largest = scores.amax(-1, keepdim=True)
    weights = (scores - largest).exp()
    total = weights.sum(-1, keepdim=True)
    weights = weights / total
    if keep_prob < 1:
        weights = torch.dropout(weights, 1 - keep_prob, True)
    out = (weights @ value.float()).to(query.dtype)
    return out, largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8)
