"""``npu_fusion_attention``: attention as torch_npu's documents define it, in plain torch."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator import dropout
from npumigrate_emulator.arrangement import unpack_bits

_EVERYTHING = 2147483647
# sparse_mode
_BAND_OF_TOKENS, _WHOLE_MASK, _CAUSAL_LEFT_TOP, _CAUSAL_RIGHT_BOTTOM, _BAND = range(5)
# pse_type
_ADDED_TO_SCALED, _SCALED_WITH_SCORES = range(2)

Result = tuple[Tensor, Tensor, Tensor, Tensor, int | Tensor, int | Tensor, int]


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
    actual_seq_qlen: list[int] | Tensor | None = None,
    actual_seq_kvlen: list[int] | Tensor | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Optional[Tensor] = None,
    dropout_mask: Optional[Tensor] = None,
    seed: int = 0,
    offset: int = 0,
    *,
    pse_type: int = _SCALED_WITH_SCORES,
    numbers: Optional[dropout.Numbers] = None,
    in_memory: bool = False,
    **others: Any,
) -> Result:
    """Return attention, its softmax's maxima and sums, and the numbers that belong to a dropout mask.

    ``numbers``, the seed and the offset of an earlier call, drop what that call dropped; with ``in_memory``
    they may be in the NPU's memory, so that a graph draws new ones at each replay.
    """
    varlen = input_layout.upper() == "TND"
    _refuse("prefix", prefix is not None)
    _refuse("sink", sink is not None)
    _refuse(f"sparse_mode={sparse_mode}", sparse_mode not in range(_BAND + 1))
    _refuse(f"pse_type={pse_type}", pse_type not in (_ADDED_TO_SCALED, _SCALED_WITH_SCORES))
    _refuse("pse and TND", varlen and pse is not None)
    if varlen:  # sequences one after the other; the lists say where each ends
        ends_q, ends_k = _ends(actual_seq_qlen, query), _ends(actual_seq_kvlen, key)
        places = list(zip([0, *ends_q], ends_q, [0, *ends_k], ends_k))
        parts = [
            (query[start_q:end_q], key[start_k:end_k], value[start_k:end_k])
            for start_q, end_q, start_k, end_k in places
        ]
        split = [[part.transpose(0, 1).unsqueeze(0) for part in each] for each in parts]
    else:
        heads = _key_heads(query, key, head_num, input_layout)
        split = [[
            split_heads(query, head_num, input_layout),
            *(split_heads(each, heads, input_layout) for each in (key, value)),
        ]]  # fmt: skip
    sizes = [each[0].shape[:-1].numel() * each[1].shape[-2] for each in split]
    count = sum(sizes)
    weights: list[Optional[Tensor]] = [None] * len(split)
    if keep_prob < 1:
        if dropout_mask is not None:
            bits = unpack_bits(dropout_mask.flatten(), count)
        else:
            own = numbers or dropout.next_numbers(query.device, in_memory)
            known = numbers is not None or isinstance(own[0], Tensor)
            bits = dropout.kept(count, keep_prob, query.device, own if known else None)
            seed, offset = own
        weights = list((bits / keep_prob if keep_prob else bits.float()).split(sizes))
    found = []
    for (queries, keys, values), weight in zip(split, weights):
        hidden = hidden_keys(queries, keys, atten_mask, sparse_mode, pre_tockens, next_tockens)
        found.append(attend(queries, keys, values, pse, pse_type, hidden, scale, weight))
    if varlen:
        joined = [torch.cat([part[i][0].transpose(0, 1) for part in found]) for i in range(3)]
        return (joined[0], joined[1], joined[2], query.new_empty(0), seed, offset, count)
    out, largest, total = found[0]
    return join_heads(out, input_layout), largest, total, query.new_empty(0), seed, offset, count


def _ends(lengths: list[int] | Tensor | None, data: Tensor) -> list[int]:
    if lengths is None:
        return [data.shape[0]]
    return [int(end) for end in lengths]


def _refuse(what: str, asked: bool) -> None:
    if asked:
        raise NotImplementedError(
            f"npumigrate emulate: the emulator lacks npu_fusion_attention with {what}; an NPU may have it"
        )


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
    **others: Any,
) -> Result:
    """As above, with other names for its arguments."""
    _refuse("query_rope or key_rope", query_rope is not None or key_rope is not None)
    return fusion_attention(
        query, key, value, head_num, input_layout, pre_tockens=pre_tokens, next_tockens=next_tokens, **others
    )


def fusion_attention_v3(*args: Any, **others: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """As the first, with tensors of lengths, and of the numbers that belong to a dropout mask."""
    out, largest, total, softmax, *numbers, _ = fusion_attention(*args, **others, in_memory=True)
    if torch.npu.is_current_stream_capturing():
        in_memory = [
            each if isinstance(each, Tensor) else out.new_zeros(1, dtype=torch.int64) for each in numbers
        ]
    else:
        in_memory = [torch.tensor([each]) for each in numbers]
    return out, largest, total, softmax, in_memory[0], in_memory[1]


def split_heads(data: Tensor, heads: int, layout: str) -> Tensor:
    """Bring a tensor to batch, head, sequence, width."""
    if layout == "BSH":
        return data.unflatten(-1, (heads, -1)).transpose(1, 2)
    if layout == "SBH":
        return data.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
    return data.transpose(1, 2) if layout == "BSND" else data


def join_heads(data: Tensor, layout: str) -> Tensor:
    """Bring it back to the layout."""
    if layout == "BSH":
        return data.transpose(1, 2).flatten(2)
    if layout == "SBH":
        return data.permute(2, 0, 1, 3).flatten(2)
    return data.transpose(1, 2) if layout == "BSND" else data


def _key_heads(query: Tensor, key: Tensor, head_num: int, layout: str) -> int:
    if layout in ("BSH", "SBH"):
        return int(key.shape[-1] // (query.shape[-1] // head_num))
    return int(key.shape[1 if layout == "BNSD" else 2])


def hidden_keys(
    query: Tensor, key: Tensor, mask: Optional[Tensor], mode: int, before: int, after: int
) -> Optional[Tensor]:
    """Return which keys a query does not see. A mask is True where it hides; modes 2 to 4 make their own.

    Without a mask nothing is hidden, whatever the mode says.
    """
    if mask is None:
        return None
    rows, columns = query.shape[-2], key.shape[-2]
    if mode in (_BAND_OF_TOKENS, _WHOLE_MASK):
        hidden = mask.bool()[..., :rows, :columns]  # one mask for sequences of several lengths
        if mode == _BAND_OF_TOKENS and (before < columns or after < columns):
            hidden = hidden | _outside(rows, columns, before, after, 0, query.device)
        return hidden
    shift = 0 if mode == _CAUSAL_LEFT_TOP else columns - rows
    if mode != _BAND:
        before, after = columns + rows, 0
    return _outside(rows, columns, before, after, shift, query.device)


def _outside(rows: int, columns: int, before: int, after: int, shift: int, device: torch.device) -> Tensor:
    distance = torch.arange(columns, device=device) - (torch.arange(rows, device=device)[:, None] + shift)
    return (distance < -before) | (distance > after)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Optional[Tensor],
    bias_type: int,
    hidden: Optional[Tensor],
    scale: float,
    dropped: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return attention of heads that are split, and its softmax's maxima and sums.

    ``dropped`` has a factor for each weight.
    """
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query.float() @ key.float().transpose(-1, -2)
    if bias is not None and bias_type == _SCALED_WITH_SCORES:
        scores = scores + bias.float()
    scores = scores * scale
    if bias is not None and bias_type == _ADDED_TO_SCALED:
        scores = scores + bias.float()
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(torch.float32).min)
    largest = scores.amax(-1, keepdim=True)
    weights = (scores - largest).exp()
    total = weights.sum(-1, keepdim=True)
    weights = weights / total
    if hidden is not None:  # a query that sees no key gets nothing
        weights = weights.masked_fill(hidden.all(-1, keepdim=True), 0)
    if dropped is not None:
        weights = weights * dropped.view(weights.shape)
    out = (weights @ value.float()).to(query.dtype)
    return out, largest.expand(*largest.shape[:-1], 8), total.expand(*total.shape[:-1], 8)
