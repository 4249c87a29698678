"""Attention and experts on different machines: contexts as op-plugin's tests lay them out."""

from __future__ import annotations

import struct

import pytest
import torch
import torch_npu

SESSIONS, MICRO_BATCHES, ROWS, CHOICES, WIDTH = 2, 2, 3, 4, 8


def context(token_bytes: int, attention: tuple[int, ...] = (), experts: tuple[int, ...] = (), lists=()):
    """A schedule context: four areas, with the addresses and sizes of what they point to."""
    common = struct.pack("<6I104x", SESSIONS, MICRO_BATCHES, ROWS, CHOICES, 2, token_bytes)
    parts = [common, bytes(128)]
    parts.append(struct.pack("<4QI", *attention).ljust(128, b"\0") if attention else bytes(128))
    parts.append(struct.pack("<5Q", *experts).ljust(128, b"\0") if experts else bytes(128))
    parts.append(struct.pack("<8QI", *lists).ljust(512, b"\0") if lists else bytes(512))
    return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.int8).npu()


def test_what_experts_gave_is_summed_by_their_scales():
    tokens = torch.randn(MICRO_BATCHES, ROWS, CHOICES, WIDTH).half()
    flags, given = torch.ones(MICRO_BATCHES, ROWS, CHOICES, dtype=torch.int32).npu(), tokens.npu()
    scales = torch.rand(ROWS, CHOICES - 1)
    where = context(WIDTH * 2, attention=(flags.data_ptr(), 4 * flags.numel(), given.data_ptr(), 0, 1))
    result, layer = torch_npu.npu_attention_worker_combine(
        where, scales.npu(), torch.tensor([4], dtype=torch.int32).npu(), WIDTH
    )
    own = tokens[1].float()
    expected = (own[:, :-1] * scales[..., None]).sum(1) + own[:, -1]
    torch.testing.assert_close(result.cpu(), expected.half())
    assert layer.tolist() == [5]
    with pytest.raises(NotImplementedError, match="lacks npu_attention_worker_combine with need_schedule"):
        torch_npu.npu_attention_worker_combine(where, scales.npu(), layer, WIDTH, need_schedule=1)


@pytest.mark.parametrize("scheduled", [0, 1])
def test_tokens_of_sessions_go_to_their_experts(scheduled):
    size = 512  # bytes of a token: eight bits each, and a scale behind them
    tokens = torch.zeros(SESSIONS, MICRO_BATCHES, ROWS, CHOICES, size, dtype=torch.int8)
    tokens[..., :WIDTH] = torch.randint(-9, 9, (*tokens.shape[:-1], WIDTH), dtype=torch.int8)
    scales = torch.rand(tokens.shape[:-1])
    tokens[..., WIDTH : WIDTH + 4] = scales[..., None].view(torch.int8)
    experts = torch.randint(0, 2, (SESSIONS, ROWS, CHOICES), dtype=torch.int32)
    experts[1, 2, 3] = 214748364  # no expert
    records = torch.zeros(SESSIONS, MICRO_BATCHES, 2 + ROWS * CHOICES, dtype=torch.int32)
    records[:, 1, 2:] = experts.flatten(1)
    held = [each.npu() for each in (records, tokens, torch.tensor([0, 1]).int(), torch.tensor([0, 1]).int())]
    held.append(experts.npu())
    info, data, sessions, batches, chosen = (each.data_ptr() for each in held)
    where = context(
        size,
        experts=(info if scheduled else 0, 0, data, 0, 1),
        lists=(0, 0, sessions, 0, batches, 0, 0 if scheduled else chosen, 0, SESSIONS),
    )
    given = torch_npu.npu_ffn_worker_batching(
        where, 2, [SESSIONS, ROWS, CHOICES, WIDTH], token_dtype=2, need_schedule=scheduled
    )
    values, groups, session, batch, row, choice, scale, count = (each.cpu() for each in given)
    order = torch.argsort(experts.flatten(), stable=True)[:-1]
    assert count.tolist() == [len(order)]
    assert torch.equal(values[: len(order)], tokens[:, 1, ..., :WIDTH].reshape(-1, WIDTH)[order])
    assert not values[len(order) :].any()
    torch.testing.assert_close(scale[: len(order)], scales[:, 1].flatten()[order])
    assert groups.tolist() == [[each, int((experts == each).sum())] for each in (0, 1)]
    found = ((session * ROWS + row) * CHOICES + choice)[: len(order)]
    assert (found.tolist(), set(batch[: len(order)].tolist())) == (order.tolist(), {1})


def test_a_context_that_points_nowhere_is_an_error_and_no_crash():
    where = context(16, attention=(8, 4, 8, 4, 0))
    scales, layer = torch.rand(ROWS, CHOICES - 1).npu(), torch.tensor([1], dtype=torch.int32).npu()
    with pytest.raises(RuntimeError, match="where no memory is"):
        torch_npu.npu_attention_worker_combine(where, scales, layer, WIDTH)
    with pytest.raises(RuntimeError, match="token_dtype should be 0, 1 or 2, but got 3"):
        torch_npu.npu_ffn_worker_batching(where, 2, [1, 1, 1, 8], token_dtype=3)
