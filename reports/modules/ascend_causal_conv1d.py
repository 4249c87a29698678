"""Made by npumigrate: causal_conv1d_fn of the library causal_conv1d, in torch operators."""

# npumigrate: skip-file

import torch
from torch.nn import functional


def causal_conv1d_fn(
    x,
    weight,
    bias=None,
    seq_idx=None,
    initial_states=None,
    return_final_states=False,
    final_states_out=None,
    activation=None,
):
    """A convolution of each channel that sees what came before; ``seq_idx`` keeps sequences apart."""
    if activation not in (None, "silu", "swish"):
        raise NotImplementedError("activation must be None, silu, or swish")
    before = weight.shape[1] - 1
    values = x.to(weight.dtype)
    start = torch.zeros_like(values[..., :1]).expand(*values.shape[:2], before)
    full = torch.cat((start if initial_states is None else initial_states.to(weight.dtype), values), -1)
    length = x.shape[-1]
    found = 0
    for tap in range(before + 1):
        part = full[..., tap : tap + length]
        if seq_idx is not None and tap < before:
            back = before - tap
            same = functional.pad(seq_idx[:, :-back], (min(back, length), 0), value=-1) == seq_idx
            part = part * same.unsqueeze(1).to(part.dtype)
        found = found + part * weight[:, tap, None]
    if bias is not None:
        found = found + bias[:, None]
    found = (functional.silu(found) if activation else found).to(x.dtype)
    if not return_final_states:
        return found
    states = full[..., full.shape[-1] - before :].to(x.dtype)
    return found, states if final_states_out is None else final_states_out.copy_(states)
