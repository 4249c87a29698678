"""Attention for inference, and the derivative of the fused attention where it is called by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator import attention
from npumigrate_emulator.routing import refuse

_PRECISIONS = ("inner_precise", "antiquant_mode", "key_antiquant_mode", "value_antiquant_mode")


def _infer(
    name: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    key_heads: int,
    scale: float,
    layout: str,
    ends: tuple[Any, Any],
    mask: Optional[Tensor],
    shift: Optional[Tensor],
    tokens: tuple[int, int],
    mode: int,
) -> tuple[Tensor, Tensor]:
    """Return attention and the logarithm of the sums of its exponents."""
    refuse(name, {}, input_layout=None if layout in ("BSH", "BNSD", "BSND", "TND") else layout)
    if layout == "TND":
        found = attention.fusion_attention(
            query, key, value, heads, layout, None, None, mask, scale, 1.0, *tokens,
            actual_seq_qlen=ends[0], actual_seq_kvlen=ends[1], sparse_mode=mode,
        )  # fmt: skip
        return found[0], (found[1] + found[2].log())[..., :1]
    split = [attention.split_heads(query, heads, layout)]
    split += [attention.split_heads(each, key_heads or heads, layout) for each in (key, value)]
    if ends[1] is not None:  # what is behind the end of a sequence is not seen
        positions = torch.arange(split[1].shape[2], device=key.device)
        given = torch.tensor([int(each) for each in ends[1]], device=key.device)
        behind = (positions >= given[:, None])[:, None, None]
    else:
        behind = None
    hidden = attention.hidden_keys(split[0], split[1], mask, mode, *tokens)
    if behind is not None:
        hidden = behind if hidden is None else hidden | behind
    # A shift is added to scaled scores.
    out, largest, total = attention.attend(split[0], split[1], split[2], shift, 0, hidden, scale)
    sums = (largest + total.log())[..., :1]
    return attention.join_heads(out, layout), sums


def _prompt(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    padding_mask: Optional[Tensor] = None,
    atten_mask: Optional[Tensor] = None,
    pse_shift: Optional[Tensor] = None,
    actual_seq_lengths: Any = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    actual_seq_lengths_kv: Any = None,
    sparse_mode: int = 0,
    **quantized: Any,
) -> Tensor:
    refuse("npu_prompt_flash_attention", quantized)
    return _infer(
        "npu_prompt_flash_attention", query, key, value, num_heads, num_key_value_heads, scale_value,
        input_layout, (actual_seq_lengths, actual_seq_lengths_kv), atten_mask, pse_shift,
        (pre_tokens, next_tokens), sparse_mode,
    )[0]  # fmt: skip


def _incremental(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    padding_mask: Optional[Tensor] = None,
    atten_mask: Optional[Tensor] = None,
    pse_shift: Optional[Tensor] = None,
    actual_seq_lengths: Any = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    inner_precise: int = 1,
    **others: Any,
) -> Tensor:
    refuse("npu_incre_flash_attention", others)
    return _infer(
        "npu_incre_flash_attention", query, key, value, num_heads, num_key_value_heads, scale_value,
        input_layout, (None, actual_seq_lengths), atten_mask, pse_shift, (2147483647, 2147483647), 0,
    )[0]  # fmt: skip


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    pse_shift: Optional[Tensor] = None,
    atten_mask: Optional[Tensor] = None,
    actual_seq_lengths: Any = None,
    actual_seq_lengths_kv: Any = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    softmax_lse_flag: bool = False,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    refuse("npu_fused_infer_attention_score", {k: v for k, v in others.items() if k not in _PRECISIONS})
    out, sums = _infer(
        "npu_fused_infer_attention_score", query, key, value, num_heads, num_key_value_heads, scale,
        input_layout, (actual_seq_lengths, actual_seq_lengths_kv), atten_mask, pse_shift,
        (pre_tokens, next_tokens), sparse_mode,
    )  # fmt: skip
    return out, sums if softmax_lse_flag else sums.new_zeros(1)


def _fused_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    num_query_heads: int = 1,
    softmax_scale: float = 1.0,
    return_softmax_lse: bool = False,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    return _fused(
        query, key, value, actual_seq_lengths=actual_seq_qlen, actual_seq_lengths_kv=actual_seq_kvlen,
        num_heads=num_query_heads, scale=softmax_scale, softmax_lse_flag=return_softmax_lse, **others,
    )  # fmt: skip


def _gradient(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    gradient: Tensor,
    head_num: int,
    input_layout: str,
    *,
    pse: Optional[Tensor] = None,
    padding_mask: Optional[Tensor] = None,
    atten_mask: Optional[Tensor] = None,
    scale_value: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    sink: Optional[Tensor] = None,
    seed: Any = 0,
    offset: Any = 0,
    **_: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The derivatives, with what the seed and the offset had dropped."""
    refuse("npu_fusion_attention_grad", {"sink": sink})
    numbers = tuple(
        each if isinstance(each, Tensor) and not each.is_cpu else int(each or 0) for each in (seed, offset)
    )
    given = [each.detach().requires_grad_() for each in (query, key, value)]
    shift = None if pse is None else pse.detach().requires_grad_()
    with torch.enable_grad():
        out = attention.fusion_attention(
            given[0], given[1], given[2], head_num, input_layout, shift, padding_mask, atten_mask,
            scale_value, keep_prob, pre_tockens, next_tockens, 0, prefix, actual_seq_qlen, actual_seq_kvlen,
            sparse_mode, numbers=(numbers[0], numbers[1]),
        )[0]  # fmt: skip
        found = torch.autograd.grad(out, [*given, *([] if shift is None else [shift])], gradient)
    empty = query.new_empty(0)
    return found[0], found[1], found[2], found[3] if shift is not None else empty, empty


def _sums(query: Tensor, heads: int, layout: str, width: int) -> Tensor:
    """An empty tensor for what each head of each row of queries has."""
    rows = query if layout == "TND" else attention.split_heads(query, heads, layout)
    return query.new_empty((*rows.shape[:-1], width), dtype=torch.float32)


def _output(
    query: Tensor,
    value: Tensor,
    *,
    input_layout: str = "BSH",
    num_heads: int = 1,
    num_query_heads: int = 0,
    num_key_value_heads: int = 0,
    softmax_lse_flag: bool = False,
    return_softmax_lse: bool = False,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Empty tensors for the results of attention for inference."""
    heads = num_query_heads or num_heads
    sums = _sums(query, heads, input_layout, 1)
    by_head = attention.split_heads(value, num_key_value_heads or heads, input_layout)
    out = query.new_empty(*sums.shape[:-1], by_head.shape[-1])
    wanted = softmax_lse_flag or return_softmax_lse
    return attention.join_heads(out, input_layout), sums if wanted else sums.new_zeros(1)


def _output_for_training(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str
) -> tuple[Tensor, Tensor, Tensor]:
    sums = _sums(query, head_num, input_layout, 8)
    return torch.empty_like(query), sums, torch.empty_like(sums)


def _output_for_gradients(
    query: Tensor, key: Tensor, value: Tensor, pse: Optional[Tensor] = None, sink: Optional[Tensor] = None
) -> tuple[Tensor, ...]:
    inputs = (query, key, value, pse, sink)
    return tuple(query.new_empty(0) if each is None else torch.empty_like(each) for each in inputs)


def _workspace(query: Tensor, *_: Any, **__: Any) -> Tensor:
    """What a graph keeps for the fused attention: nothing here."""
    return query.new_empty(0, dtype=torch.uint8)


def _gradient_v2(
    *args: Any, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, **options: Any
) -> Any:
    """With derivatives of rotated parts, which are not there."""
    ropes = {name: options.pop(name, None) for name in ("query_rope", "key_rope")}
    refuse("npu_fusion_attention_grad_v2", ropes, pse_type=None if options.pop("pse_type", 1) == 1 else 0.5)
    found = _gradient(*args, pre_tockens=pre_tokens, next_tockens=next_tokens, **options)
    empty = found[0].new_empty(0)
    return (*found[:4], empty, empty, found[4])


def _update_ring(
    prev_attn_out: Tensor,
    prev_softmax_max: Tensor,
    prev_softmax_sum: Tensor,
    cur_attn_out: Tensor,
    cur_softmax_max: Tensor,
    cur_softmax_sum: Tensor,
    *,
    actual_seq_qlen: Optional[Tensor] = None,
    input_layout: str = "SBH",
    input_softmax_layout: str = "",
) -> tuple[Tensor, Tensor, Tensor]:
    """Join attention over two parts of the keys."""
    largest = torch.maximum(prev_softmax_max, cur_softmax_max)
    before = prev_softmax_sum * (prev_softmax_max - largest).exp()
    now = cur_softmax_sum * (cur_softmax_max - largest).exp()
    total = before + now

    def share(part: Tensor) -> Tensor:
        of = (part / total)[..., 0]
        if input_layout != "SBH":
            return of[..., None]
        heads = of.permute(2, 0, 1)[..., None]
        width = prev_attn_out.shape[-1] // heads.shape[2]
        return heads.expand(*heads.shape[:3], width).flatten(2)

    out = prev_attn_out.float() * share(before) + cur_attn_out.float() * share(now)
    return out.to(prev_attn_out.dtype), largest, total


REFERENCES: dict[str, Callable[..., Any]] = {
    "_npu_fused_infer_attention_score_get_max_workspace": _workspace,
    "_npu_fused_infer_attention_score_infer_output": _output,
    "_npu_fused_infer_attention_score_v2_get_max_workspace": _workspace,
    "_npu_fused_infer_attention_score_v2_infer_output": _output,
    "_npu_fusion_attention_grad_v3_get_max_workspace": _workspace,
    "_npu_fusion_attention_grad_v3_infer_output": _output_for_gradients,
    "_npu_fusion_attention_v3_get_max_workspace": _workspace,
    "_npu_fusion_attention_v3_infer_output": _output_for_training,
    "npu_fused_infer_attention_score": _fused,
    "npu_fused_infer_attention_score_v2": _fused_v2,
    "npu_fusion_attention_grad": _gradient,
    "npu_fusion_attention_grad_v2": _gradient_v2,
    "npu_fusion_attention_grad_v3": _gradient,
    "npu_incre_flash_attention": _incremental,
    "npu_prompt_flash_attention": _prompt,
    "npu_ring_attention_update": _update_ring,
}
