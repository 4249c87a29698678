"""Attention and experts on different machines: what a schedule context in the NPU's memory points to.

The layout of the context and the results are those of op-plugin's tests
(``test_npu_attention_worker_combine.py``, ``test_npu_ffn_worker_batching.py``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from npumigrate_emulator.routing import refuse

_SIZE = 1024  # bytes of a context
_ATTENTION, _EXPERTS, _LISTS = 256, 384, 512  # where its areas begin, in bytes
_DTYPES = {0: torch.float16, 1: torch.bfloat16, 2: torch.int8}


class _Context(NamedTuple):
    sessions: int
    micro_batches: int
    rows: int  # of a micro batch
    choices: int  # experts of a row, with the shared one
    token_bytes: int
    bytes: bytes

    def at(self, offset: int, code: str = "Q") -> int:
        number: int = struct.unpack_from(f"<{code}", self.bytes, offset)[0]
        return number


def _read_context(schedule_context: Tensor) -> _Context:
    given = schedule_context.cpu().contiguous().view(torch.uint8).numpy().tobytes()
    if len(given) < _SIZE:
        raise RuntimeError(f"npumigrate emulate: a schedule context has {_SIZE} bytes, this one {len(given)}")
    sessions, micro_batches, rows, choices, _, token_bytes = struct.unpack_from("<6I", given)
    return _Context(sessions, micro_batches, rows, choices, token_bytes, given)


def _memory(address: int, count: int) -> Tensor:
    """Return a copy of bytes of the emulated NPU's memory."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            found = os.pread(memory.fileno(), count, address)
    except (OSError, OverflowError):
        found = b""
    if len(found) != count:
        raise RuntimeError(
            f"npumigrate emulate: the schedule context points to {count} bytes at {address:#x}, "
            f"where no memory is"
        )
    return torch.frombuffer(bytearray(found), dtype=torch.uint8)


def _combine(
    schedule_context: Tensor,
    expert_scales: Tensor,
    layer_id: Tensor,
    hidden_size: int,
    *,
    token_dtype: int = 0,
    need_schedule: int = 0,
) -> tuple[Tensor, Tensor]:
    """Sum what the experts gave for each row, by its scales, and add what the shared expert gave."""
    refuse("npu_attention_worker_combine", {}, need_schedule=need_schedule or None)
    context = _read_context(schedule_context)
    dtype = torch.bfloat16 if token_dtype == 1 else torch.float16
    shape = (context.rows, context.choices, hidden_size)
    size = context.rows * context.choices * hidden_size * 2  # bytes of a micro batch
    start = context.at(_ATTENTION + 16) + context.at(_ATTENTION + 32, "I") * size
    tokens = _memory(start, size).view(dtype).view(shape).float()
    scales = expert_scales.cpu().float()[..., None]
    whole = (tokens[:, :-1] * scales).sum(1) + tokens[:, -1]
    return whole.to(dtype).to(schedule_context.device), layer_id.int() + 1


def _experts_of(context: _Context, scheduled: bool, micro_batch: int) -> Tensor:
    """Return the expert of each choice: of sessions, rows and choices, one after the other."""
    choices = context.rows * context.choices
    if not scheduled:
        count = context.at(_LISTS + 64, "I") * choices
        return _memory(context.at(_LISTS + 48), 4 * count).view(torch.int32)
    records = context.sessions * context.micro_batches  # each: a flag, the layer, and the experts
    found = _memory(context.at(_EXPERTS), 4 * records * (2 + choices)).view(torch.int32)
    return found.view(context.sessions, context.micro_batches, 2 + choices)[:, micro_batch, 2:].flatten()


def _batch(
    schedule_context: Tensor,
    expert_num: int,
    max_out_shape: list[int],
    *,
    token_dtype: int = 0,
    need_schedule: int = 0,
    layer_num: int = 0,
) -> tuple[Tensor, ...]:
    """Gather the tokens that came from sessions, expert by expert; rows behind the last are zeros."""
    if token_dtype not in _DTYPES:
        raise RuntimeError(f"token_dtype should be 0, 1 or 2, but got {token_dtype}")
    context = _read_context(schedule_context)
    micro_batch = context.at(_EXPERTS + 32) % context.micro_batches
    experts = _experts_of(context, bool(need_schedule), micro_batch)
    order = torch.argsort(experts, stable=True)
    valid = (experts[order] >= 0) & (experts[order] < expert_num)
    order, count = order[valid], int(valid.sum())
    session, rest = order // (context.rows * context.choices), order % (context.rows * context.choices)
    row, choice = rest // context.choices, rest % context.choices
    given = context.sessions if need_schedule else context.at(_LISTS + 64, "I")
    session = _memory(context.at(_LISTS + 16), 4 * given).view(torch.int32)[session]
    batches = _memory(context.at(_LISTS + 32), 4 * context.micro_batches).view(torch.int32)
    batch = int(batches[micro_batch])

    shape = (context.sessions, context.micro_batches, context.rows, context.choices, context.token_bytes)
    tokens = _memory(context.at(_EXPERTS + 16), torch.Size(shape).numel()).view(shape)
    taken = tokens[session.long(), batch, row, choice]
    dtype, width = _DTYPES[token_dtype], max_out_shape[3]
    values = taken[:, : width * dtype.itemsize].contiguous().view(dtype)
    scales = taken[:, width : width + 4].contiguous().view(torch.float32)[:, 0] if token_dtype == 2 else None
    groups = torch.zeros(expert_num, 2, dtype=torch.int64)
    present, counts = torch.unique_consecutive(experts[order], return_counts=True)
    groups[: len(present)] = torch.stack((present.long(), counts), 1)

    length = torch.Size(max_out_shape[:3]).numel()

    def padded(data: Tensor, dtype: torch.dtype) -> Tensor:
        whole = torch.zeros((length, *data.shape[1:]), dtype=dtype)
        whole[:count] = data
        return whole.to(schedule_context.device)

    numbers = [padded(each, torch.int32) for each in (session, torch.full((count,), batch), row, choice)]
    scale = padded(torch.zeros(count) if scales is None else scales, torch.float32)
    device = schedule_context.device
    return padded(values, dtype), groups.to(device), *numbers, scale, torch.tensor([count]).to(device)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_attention_worker_combine": _combine,
    "npu_ffn_worker_batching": _batch,
}
