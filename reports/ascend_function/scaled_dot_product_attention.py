"""torch.nn.functional.scaled_dot_product_attention, written out."""

# npumigrate: skip-file

import math

import torch


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Attention of the queries to the keys, as torch 2 computes it without a fused kernel."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
        attn_mask = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        weights = weights.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        weights = weights + attn_mask
    # A query that may look at nothing gives zeros, and no nan in the gradients.
    blind = (weights == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(weights.masked_fill(blind, 0), -1).masked_fill(blind, 0)
    if dropout_p > 0:
        weights = torch.nn.functional.dropout(weights, dropout_p)
    return torch.matmul(weights, value)
