"""Recurrent layers of torch_npu's own: torch's formulas, with the gates of each step among the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator.routing import refuse


def _lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, ...]:
    """Return the hidden state, the cell, the four gates and the tangent of the cell (as i, j, f, o, tanh)."""
    to_input, to_forget, candidate, to_output = gates.float().chunk(4, -1)
    to_input, to_forget, to_output = to_input.sigmoid(), to_forget.sigmoid(), to_output.sigmoid()
    candidate = candidate.tanh()
    new = to_forget * cell.float() + to_input * candidate
    bent = new.tanh()
    steps = (to_output * bent, new, to_input, candidate, to_forget, to_output, bent)
    return tuple(step.to(gates.dtype) for step in steps)


def _lstm_cell(
    data: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    h: Tensor,
    c: Tensor,
    b_ih: Optional[Tensor] = None,
    b_hh: Optional[Tensor] = None,
) -> tuple[Tensor, ...]:
    gates = data @ w_ih + h @ w_hh
    for bias in (b_ih, b_hh):
        if bias is not None:
            gates = gates + bias
    hidden, *others = _lstm_step(gates, c)
    return (hidden, hidden, *others)


def _lstm(
    data: Tensor,
    weight: Tensor,
    bias: Tensor,
    seq_mask: Tensor,
    h: Tensor,
    c: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    flag_seq: bool,
    direction: bool,
) -> tuple[Tensor, ...]:
    """One layer in one direction; each result is over all steps."""
    refuse(
        "npu_lstm",
        {
            "bidirectional": bidirectional,
            "batch_first": batch_first,
            "flag_seq": flag_seq,
            "dropout": dropout,
        },
        num_layers=num_layers - 1,
    )
    hidden, cell = h[-1], c[-1]
    found = []
    for each in data.flip(0) if direction else data:
        gates = torch.cat((each, hidden), 1) @ weight
        hidden, cell, *others = _lstm_step(gates + bias if has_biases else gates, cell)
        found.append((hidden, hidden, cell, *others))
    results = tuple(torch.stack(steps) for steps in zip(*found))
    return (results[0].flip(0) if direction else results[0], *results[1:])


def _gru(
    data: Tensor,
    hx: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    seq_length: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """One layer in one direction: the outputs, hidden states, and the gates of each step."""
    options = {"bidirectional": bidirectional, "batch_first": batch_first, "dropout": dropout}
    refuse("npu_gru", options, num_layers=num_layers - 1)
    hidden = hx[-1]
    found = []
    for each in data:
        from_input, from_hidden = each @ weight_input, hidden @ weight_hidden
        if has_biases:
            from_input, from_hidden = from_input + bias_input, from_hidden + bias_hidden
        reset_in, update_in, new_in = from_input.chunk(3, -1)
        reset_hidden, update_hidden, new_hidden = from_hidden.chunk(3, -1)
        reset, update = (reset_in + reset_hidden).sigmoid(), (update_in + update_hidden).sigmoid()
        new = (new_in + reset * new_hidden).tanh()
        hidden = new + update * (hidden - new)
        found.append((hidden, hidden, update, reset, new, new_hidden))
    return tuple(torch.stack(steps) for steps in zip(*found))


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_gru": _gru,
    "npu_lstm": _lstm,
    "npu_lstm_cell": _lstm_cell,
}
