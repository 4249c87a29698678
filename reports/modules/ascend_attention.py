"""Made by npumigrate: functions of flash_attn and xformers.ops on NPUs, by torch_npu's fused attention.

They take what flash_attn 2 and xformers take, and compute the same, with gradients. What NPUs do not have
raises NotImplementedError. Rotary embedding and the norm are torch operators and torch_npu.npu_rms_norm.
"""

# npumigrate: skip-file

import sys
from functools import lru_cache

import torch
import torch_npu

# A program may name the modules of flash_attn and xformers in full.
flash_attn_interface = sys.modules[__name__]
fmha = sys.modules[__name__]
attn_bias = sys.modules[__name__]

_CAUSAL_LEFT_TOP, _CAUSAL_RIGHT_BOTTOM, _BAND = 2, 3, 4  # sparse_mode of npu_fusion_attention
_ALL = 2147483647


@lru_cache
def _hidden(device):
    """The mask that npu_fusion_attention takes with these modes, for sequences of any length."""
    return torch.ones(2048, 2048, dtype=torch.bool, device=device).triu(1)


def _attend(q, k, v, dropout_p=0.0, scale=None, mode=0, window=(-1, -1), ends_q=None, ends_k=None):
    """Attention of tensors (batch, sequence, heads, width), or of sequences one behind the other."""
    more = {"keep_prob": 1.0 - dropout_p, "scale": q.shape[-1] ** -0.5 if scale is None else scale}
    if tuple(window) != (-1, -1):
        before, after = (_ALL if each < 0 else each for each in window)
        mode, after = _BAND, 0 if mode else after
        more.update(pre_tockens=before, next_tockens=after)
    if mode:
        more.update(atten_mask=_hidden(q.device), sparse_mode=mode)
    if ends_q is not None:
        more.update(actual_seq_qlen=ends_q, actual_seq_kvlen=ends_k)
    layout = "BSND" if ends_q is None else "TND"
    return torch_npu.npu_fusion_attention(q, k, v, q.shape[-2], layout, **more)[0]


def _check(softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None):
    if softcap or alibi_slopes is not None or return_attn_probs or block_table is not None:
        raise NotImplementedError(
            "on NPUs there is no softcap, alibi_slopes, return_attn_probs or block_table"
        )


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), *others, **more
):
    _check(*others, **more)
    return _attend(q, k, v, dropout_p, softmax_scale, _CAUSAL_RIGHT_BOTTOM * bool(causal), window_size)


def flash_attn_qkvpacked_func(qkv, *others, **more):
    return flash_attn_func(*qkv.unbind(-3), *others, **more)


def flash_attn_kvpacked_func(q, kv, *others, **more):
    return flash_attn_func(q, *kv.unbind(-3), *others, **more)


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q=None,
    max_seqlen_k=None,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    *others,
    **more,
):
    _check(*others, **more)
    ends = cu_seqlens_q[1:].tolist(), cu_seqlens_k[1:].tolist()
    mode = _CAUSAL_RIGHT_BOTTOM * bool(causal)
    return _attend(q, k, v, dropout_p, softmax_scale, mode, window_size, *ends)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, *others, **more):
    ends = cu_seqlens, cu_seqlens, max_seqlen, max_seqlen
    return flash_attn_varlen_func(*qkv.unbind(-3), *ends, *others, **more)


def flash_attn_varlen_kvpacked_func(q, kv, *others, **more):
    return flash_attn_varlen_func(q, *kv.unbind(-3), *others, **more)


def apply_rotary_emb(
    x, cos, sin, interleaved=False, inplace=False, seqlen_offsets=0, cu_seqlens=None, max_seqlen=None
):
    if cu_seqlens is not None:
        raise NotImplementedError("on NPUs apply_rotary_emb takes no cu_seqlens")
    place = torch.arange(x.shape[1], device=x.device) + torch.as_tensor(
        seqlen_offsets, device=x.device
    ).unsqueeze(-1)
    cos, sin = (each[place].unsqueeze(-2) for each in (cos, sin))
    width = 2 * cos.shape[-1]
    part, rest = x[..., :width], x[..., width:]
    if interleaved:
        first, second = part[..., ::2], part[..., 1::2]
    else:
        first, second = part.chunk(2, -1)
    turned = first * cos - second * sin, first * sin + second * cos
    part = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    out = torch.cat((part, rest), -1).to(x.dtype)
    return x.copy_(out) if inplace else out


apply_rotary_emb_func = apply_rotary_emb


def rms_norm(x, weight, epsilon):
    return torch_npu.npu_rms_norm(x, weight, epsilon)[0]


class RMSNorm(torch.nn.Module):
    def __init__(self, hidden_size, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.eps, self.weight = eps, torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))

    def forward(self, x):
        return rms_norm(x, self.weight, self.eps)


class AttentionBias:
    """What memory_efficient_attention takes as attn_bias, beside a tensor."""

    mode = 0


class LowerTriangularMask(AttentionBias):
    mode = _CAUSAL_LEFT_TOP

    def __init__(self, *tensor_args, **tensor_kwargs):
        pass


class LowerTriangularFromBottomRightMask(AttentionBias):
    mode = _CAUSAL_RIGHT_BOTTOM


class BlockDiagonalMask(AttentionBias):
    """Sequences one behind the other, each of which sees itself alone."""

    _batch_sizes = None  # how many sequences each tensor had; programs set it, as xformers' own functions do

    def __init__(self, lengths_q, lengths_k, mode=0):
        self.lengths_q, self.lengths_k, self.mode = list(lengths_q), list(lengths_k), mode
        self.ends_q, self.ends_k = (
            torch.tensor(each).cumsum(0).tolist() for each in (self.lengths_q, self.lengths_k)
        )

    @classmethod
    def from_seqlens(cls, q_seqlen, kv_seqlen=None, *, device=None):
        return cls(q_seqlen, q_seqlen if kv_seqlen is None else kv_seqlen)

    @classmethod
    def from_tensor_list(cls, tensors):
        lengths = [each.shape[1] for each in tensors for _ in range(each.shape[0])]
        made = cls(lengths, lengths)
        made._batch_sizes = [each.shape[0] for each in tensors]
        return made, torch.cat([each.reshape(1, -1, *each.shape[2:]) for each in tensors], dim=1)

    def split(self, tensor):
        parts, kept = iter(tensor.split(self.lengths_q, dim=1)), self._batch_sizes
        return [torch.cat([next(parts) for _ in range(n)]) for n in kept] if kept else list(parts)

    def make_causal(self):
        return BlockDiagonalMask(self.lengths_q, self.lengths_k, _CAUSAL_LEFT_TOP)

    def make_causal_from_bottomright(self):
        return BlockDiagonalMask(self.lengths_q, self.lengths_k, _CAUSAL_RIGHT_BOTTOM)


class BlockDiagonalCausalMask(BlockDiagonalMask):
    def __init__(self, lengths_q, lengths_k, mode=_CAUSAL_LEFT_TOP):
        super().__init__(lengths_q, lengths_k, mode)


def memory_efficient_attention(
    query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None, output_dtype=None
):
    if query.dim() == 3:
        tensors = (each.unsqueeze(2) for each in (query, key, value))
        return memory_efficient_attention(*tensors, attn_bias, p, scale).squeeze(2)
    if query.dim() != 4 or output_dtype not in (None, query.dtype):
        raise NotImplementedError("on NPUs attention takes tensors of 3 or 4 dimensions, and no output_dtype")
    if isinstance(attn_bias, torch.Tensor):
        tensors = (each.transpose(1, 2) for each in (query, key, value))
        options = {"attn_mask": attn_bias, "dropout_p": p, "scale": scale}
        attention = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if attention is None:
            raise NotImplementedError("a tensor as attn_bias needs torch 2.1 or newer")
        return attention(*tensors, **options).transpose(1, 2)
    if isinstance(attn_bias, BlockDiagonalMask):
        tensors = (each.flatten(0, 1) for each in (query, key, value))
        ends = {"ends_q": attn_bias.ends_q, "ends_k": attn_bias.ends_k}
        return _attend(*tensors, p, scale, attn_bias.mode, **ends).unsqueeze(0)
    if attn_bias is not None and type(attn_bias) not in (
        LowerTriangularMask,
        LowerTriangularFromBottomRightMask,
    ):
        raise NotImplementedError(f"on NPUs attention takes no {type(attn_bias).__name__}")
    return _attend(query, key, value, p, scale, attn_bias.mode if attn_bias else 0)


def index_select_cat(sources, indices):
    return torch.cat([each[place.long()].flatten() for each, place in zip(sources, indices)])


def scaled_index_add(x, index, source, scaling=None, alpha=1.0):
    return x.index_add(0, index, source if scaling is None else scaling * source, alpha=alpha)


def unbind(x, dim):
    return torch.unbind(x, dim)


MemoryEfficientAttentionOp = None  # what chooses among kernels for CUDA
MemoryEfficientAttentionFlashAttentionOp = None
MemoryEfficientAttentionCutlassOp = None
