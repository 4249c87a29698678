"""Recurrent layers: the fused cells that torch uses on accelerators, and packed sequences."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from npumigrate_emulator import compute

_registered: list[torch.library.Library] = []


def register() -> tuple[str, ...]:
    """Register the operators, and return their names."""
    aten = torch.library.Library("aten", "IMPL")
    cells = {"_thnn_fused_lstm_cell": _lstm_cell, "_thnn_fused_gru_cell": _gru_cell}
    for name, cell in cells.items():
        # Made of operators that have derivatives, so that its own comes by itself.
        compute.implement(aten, name, cell, "AutogradPrivateUse1")
        compute.implement(aten, name, cell, "PrivateUse1")
    compute.implement(aten, "_pack_padded_sequence", _pack_padded_sequence, "PrivateUse1")
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        compute.implement(aten, "_pad_packed_sequence", _pad_packed_sequence, key)
    _registered.append(aten)
    return (*cells, "_pack_padded_sequence", "_pad_packed_sequence")


def _lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Optional[Tensor] = None,
    hidden_bias: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor, Tensor]:
    gates = input_gates + hidden_gates
    if input_bias is not None and hidden_bias is not None:
        gates = gates + input_bias + hidden_bias
    to_input, to_forget, candidate, to_output = gates.chunk(4, 1)
    new_cell = to_forget.sigmoid() * cell + to_input.sigmoid() * candidate.tanh()
    return to_output.sigmoid() * new_cell.tanh(), new_cell, gates


def _gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Optional[Tensor] = None,
    hidden_bias: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    if input_bias is not None and hidden_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    reset_in, update_in, new_in = input_gates.chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = hidden_gates.chunk(3, 1)
    reset = (reset_in + reset_hidden).sigmoid()
    update = (update_in + update_hidden).sigmoid()
    new = (new_in + reset * new_hidden).tanh()
    return new + update * (hidden - new), input_gates


def _pack_padded_sequence(data: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The sizes of the batches stay on the host, where the layers read them."""
    packed, sizes = torch.ops.aten._pack_padded_sequence(data.cpu(), lengths.cpu(), batch_first)
    return packed.to(data.device), sizes


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """As op-plugin: a total length is checked, and has no effect."""
    if 0 < total_length < batch_sizes.shape[0]:
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {batch_sizes.shape[0]}"
        )
    made = torch._C.DispatchKey.CompositeImplicitAutograd
    padded, lengths = torch.ops.aten._pad_packed_sequence.default._op_dk(
        made, data, batch_sizes, batch_first, padding_value, -1
    )
    return padded, lengths
