"""Dropout with masks of bits, and softmax in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator.arrangement import pack_bits, unpack_bits

_LENGTHS = 128  # a mask has a multiple of so many bits


Numbers = tuple[int | Tensor, int | Tensor]  # a seed and an offset


def kept(count: int, keep_prob: float, device: Any, numbers: Optional[Numbers] = None) -> Tensor:
    """Draw what is kept, by a seed and an offset or as the generator of the device goes on."""
    generator = None
    if numbers is not None:
        seed, offset = numbers
        if isinstance(seed, Tensor):
            return _hashed(seed + offset, count) < keep_prob
        generator = torch.Generator(device)
        state = torch.tensor([seed + offset % 4, offset - offset % 4])  # an NPU's offsets go by fours
        generator.set_state(state.view(torch.uint8))
    return torch.empty(count, device=device).bernoulli_(keep_prob, generator=generator).bool()


def _hashed(seed: Tensor, count: int) -> Tensor:
    """Return numbers from 0 to 1 of a seed in the NPU's memory, by operators that a graph can repeat."""
    mixed = torch.arange(1, count + 1, device=seed.device) + seed * 6364136223846793005
    mixed = mixed * -7046029254386353131
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):  # splitmix64
        mixed = (mixed ^ ((mixed >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return ((mixed >> 40) & 0xFFFFFF).float() / (1 << 24)


def next_numbers(device: Any, in_memory: bool = False) -> Numbers:
    """Return the seed and the offset with which the device's generator draws next.

    A graph draws them anew each time that it is replayed, if they may be in the NPU's memory (`in_memory`).
    """
    if torch.npu.is_current_stream_capturing():
        if not in_memory:
            from torch_npu.utils import _error_code as codes

            raise RuntimeError(
                "Refactor this op to use NPUGeneratorImpl::philox_npu_state. Cannot call "
                "NPUGeneratorImpl::philox_engine_inputs during NPU graph capture. If you need this call to "
                "be captured, please file an issue. Current npuStreamCaptureStatus: "
                "npuStreamCaptureStatusActive" + codes.pta_error(codes.ErrCode.NOT_SUPPORT)
            )
        seed = torch.empty(1, dtype=torch.int64, device=device).random_()
        return seed, torch.zeros_like(seed)
    seed, offset = torch.npu.get_rng_state(device).view(torch.int64).tolist()
    return seed, offset


def _bits(count: int, p: float, device: Any, numbers: Optional[Numbers] = None) -> Tensor:
    """Bits, each 1 with the probability 1 - p: the last byte is filled with 1, those behind it are 0."""
    bytes_of = pack_bits(kept(count, 1 - p, device, numbers))  # fills its last byte
    return functional.pad(bytes_of, (0, -bytes_of.numel() % (_LENGTHS // 8)))


def _generate(
    data: Tensor,
    size: list[int],
    p: float,
    seed: int,
    offset: int,
    *,
    parallel: Optional[bool] = True,
    sync: Optional[bool] = None,
) -> Tensor:
    """The same mask for the same seed and offset."""
    return _bits(math.prod(size), p, data.device, (seed, offset))


def _apply(data: Tensor, mask: Tensor, p: float) -> Tensor:
    inside = unpack_bits(mask, data.numel()).view(data.shape)
    return data * inside / (1 - p) if p < 1 else data * 0


def _dropout(data: Tensor, p: float) -> tuple[Tensor, Tensor]:
    mask = _bits(data.numel(), p, data.device)
    return _apply(data, mask, p), mask


def _with_bytes(data: Tensor, p: float, train: bool) -> Tensor:
    return functional.dropout(data, p, train)


def _add_softmax(
    data: Tensor, x1: Tensor, alpha: float, prob: float, dim: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The mask, the softmax of x1 + alpha * data, and what dropout leaves of it."""
    softmax = x1.float().add_(data, alpha=alpha).softmax(dim).to(data.dtype)
    if prob == 0:
        return torch.ones_like(softmax, dtype=torch.bool), softmax, softmax
    mask = kept(softmax.numel(), 1 - prob, softmax.device).view(softmax.shape)
    return mask, softmax, softmax * mask / (1 - prob)


def _softmax_in_place(data: Tensor) -> Tensor:
    return data.copy_(data.softmax(-1))


def _softmax_backward_in_place(data: Tensor, grad_output: Tensor, values: Tensor) -> Tensor:
    """As op-plugin: a product, then the derivative of softmax, over the softmax itself."""
    by_softmax = grad_output @ values.transpose(-2, -1)
    by_softmax -= (by_softmax * data).sum(-1, keepdim=True)
    return data.mul_(by_softmax)


def _multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    attn_mask: Tensor,
    out_proj_weight: Tensor,
    query_bias: Optional[Tensor],
    key_bias: Optional[Tensor],
    value_bias: Optional[Tensor],
    out_proj_bias: Optional[Tensor],
    dropout_mask: Optional[Tensor],
    attn_head_num: int,
    attn_dim_per_head: int,
    src_len: int,
    tgt_len: int,
    dropout_prob: float,
    softmax_use_float: bool,
) -> tuple[Tensor, ...]:
    """Rows of queries and keys; also the steps between are results."""

    def heads(data: Tensor, weight: Tensor, bias: Optional[Tensor], length: int) -> Tensor:
        rows = functional.linear(data, weight, bias)
        return rows.view(-1, length, attn_head_num, attn_dim_per_head).transpose(1, 2)

    queries = heads(query, query_weight, query_bias, tgt_len) * attn_dim_per_head**-0.5
    keys = heads(key, key_weight, key_bias, src_len)
    values = heads(value, value_weight, value_bias, src_len)
    scores = (queries @ keys.transpose(-2, -1) + attn_mask).softmax(-1, dtype=torch.float32)
    mask = _bits(scores.numel(), dropout_prob, query.device) if dropout_mask is None else dropout_mask
    dropped = _apply(scores.to(query.dtype), mask, dropout_prob)
    context = (dropped @ values).transpose(1, 2).reshape(-1, attn_head_num * attn_dim_per_head)
    out = functional.linear(context, out_proj_weight, out_proj_bias)
    return out, mask, queries, keys, values, scores, dropped, context


REFERENCES: dict[str, Callable[..., Any]] = {
    "_npu_dropout": _dropout,
    "_npu_dropout_gen_mask": _generate,
    "dropout_with_byte_mask": _with_bytes,
    "npu_attn_softmax_": _softmax_in_place,
    "npu_attn_softmax_backward_": _softmax_backward_in_place,
    "npu_dropout_backward": lambda grad, mask, p: _apply(grad, mask, p),
    "npu_dropout_do_mask": lambda data, mask, p: (_apply(data, mask, p), mask),
    "npu_dropout_with_add_softmax": _add_softmax,
    "npu_multi_head_attention": _multi_head_attention,
}
