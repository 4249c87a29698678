"""Made by npumigrate: selective_scan_fn of mamba_ssm.ops.selective_scan_interface, in torch operators."""

# npumigrate: skip-file

import torch
from torch.nn import functional


def selective_scan_fn(
    u,
    delta,
    A,
    B,
    C,
    D=None,
    z=None,
    delta_bias=None,
    delta_softplus=False,
    return_last_state=False,
):
    """The scan of a state space, a step a position, computed in float32."""
    dtype, (batch, channels, length), states = u.dtype, u.shape, A.shape[1]
    if A.is_complex():
        raise NotImplementedError("selective_scan on NPUs: A has to be real")
    u, delta = u.float(), delta.float()
    if delta_bias is not None:
        delta = delta + delta_bias[..., None].float()
    if delta_softplus:
        delta = functional.softplus(delta)
    decay = torch.exp(delta.unsqueeze(-1) * A[:, None])  # (batch, channels, length, states)
    entering = (delta * u).unsqueeze(-1) * _at_positions(B, channels, length)
    leaving = _at_positions(C, channels, length)
    state = u.new_zeros(batch, channels, states)
    found = []
    for step in range(length):
        state = decay[:, :, step] * state + entering[:, :, step]
        given = leaving[:, :, step] if leaving.shape[2] > 1 else leaving[:, :, 0]
        found.append((state * given).sum(-1))
    y = torch.stack(found, 2)
    if D is not None:
        y = y + u * D[:, None]
    if z is not None:
        y = y * functional.silu(z.float())
    y = y.to(dtype)
    return (y, state) if return_last_state else y


def _at_positions(matrix, channels, length):
    """B or C as (batch, channels, length, states), of which it may have fewer."""
    matrix = matrix.float()
    if matrix.ndim == 2:  # (channels, states)
        return matrix[None, :, None]
    if matrix.ndim == 3:  # (batch, states, length)
        return matrix.transpose(1, 2)[:, None]
    return matrix.repeat_interleave(channels // matrix.shape[1], 1).transpose(2, 3)
