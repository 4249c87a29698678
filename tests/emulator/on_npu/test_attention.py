"""`npu_fusion_attention` and its later forms, with derivatives: against the documented formula."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch.nn import functional

from tests.emulator.on_npu.references import assert_same, leaf

HEADS, WIDTH = 2, 4
SCALE = 0.5


def mask_of(rows, columns, before, after, shift=0):
    """True where a key is hidden from a query."""
    distance = torch.arange(columns) - torch.arange(rows)[:, None] - shift
    return ((distance < -before) | (distance > after)).npu()


def formula(query, key, value, hidden=None, pse=None, scaled_pse=True):
    """batch, head, sequence, width."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-1, -2)
    if pse is not None:
        scores = scores + (pse if scaled_pse else pse / SCALE)
    scores = scores * SCALE
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1).nan_to_num() @ value


LAYOUTS = {
    "BNSD": lambda data: data,
    "BSND": lambda data: data.transpose(1, 2),
    "BSH": lambda data: data.transpose(1, 2).flatten(2),
    "SBH": lambda data: data.permute(2, 0, 1, 3).flatten(2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key_heads", [HEADS, 1])
def test_layouts(layout, key_heads):
    to = LAYOUTS[layout]
    query = leaf(2, HEADS, 5, WIDTH)
    key, value = leaf(2, key_heads, 6, WIDTH), leaf(2, key_heads, 6, WIDTH)
    out = torch_npu.npu_fusion_attention(*map(to, (query, key, value)), HEADS, layout, scale=SCALE)[0]
    assert_same(out, to(formula(query, key, value)), query, key, value)


SQUARE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
MODES = {
    "mask": ({"sparse_mode": 0, "atten_mask": mask_of(5, 7, 9, 1)}, mask_of(5, 7, 9, 1)),
    "band of tokens": (
        {"sparse_mode": 0, "atten_mask": mask_of(5, 7, 2, 1), "pre_tockens": 2, "next_tockens": 1},
        mask_of(5, 7, 2, 1),
    ),
    "all of the mask": (
        {"sparse_mode": 1, "atten_mask": mask_of(5, 7, 3, 3), "next_tockens": 0},
        mask_of(5, 7, 3, 3),
    ),
    "causal, left top": ({"sparse_mode": 2}, mask_of(5, 7, 99, 0)),
    "causal, right bottom": ({"sparse_mode": 3}, mask_of(5, 7, 99, 0, shift=2)),
    "band": ({"sparse_mode": 4, "pre_tockens": 2, "next_tockens": 1}, mask_of(5, 7, 2, 1, shift=2)),
}


@pytest.mark.parametrize("mode", MODES)
def test_sparse_modes(mode):
    options, hidden = MODES[mode]
    query, key, value = leaf(2, HEADS, 5, WIDTH), leaf(2, HEADS, 7, WIDTH), leaf(2, HEADS, 7, WIDTH)
    options = {"atten_mask": SQUARE.npu(), **options}
    out = torch_npu.npu_fusion_attention(query, key, value, HEADS, "BNSD", scale=SCALE, **options)[0]
    assert_same(out, formula(query, key, value, hidden), query, key, value)


def test_without_a_mask_no_mode_hides_anything():
    query, key, value = (leaf(1, HEADS, 4, WIDTH) for _ in range(3))
    out = torch_npu.npu_fusion_attention(query, key, value, HEADS, "BNSD", scale=SCALE, sparse_mode=3)[0]
    assert_same(out, formula(query, key, value), query, key, value)


def test_a_query_that_sees_nothing():
    query, key, value = leaf(1, HEADS, 6, WIDTH), leaf(1, HEADS, 4, WIDTH), leaf(1, HEADS, 4, WIDTH)
    out = torch_npu.npu_fusion_attention(
        query, key, value, HEADS, "BNSD", scale=SCALE, sparse_mode=3, atten_mask=SQUARE.npu()
    )[0]
    assert not out[:, :, :2].any()
    assert_same(out, formula(query, key, value, mask_of(6, 4, 99, 0, shift=-2)), query, key, value)


def test_position_bias():
    query, key, value, pse = (leaf(1, HEADS, 4, WIDTH) for _ in range(4))
    inputs = (query, key, value, pse)
    out = torch_npu.npu_fusion_attention(query, key, value, HEADS, "BNSD", pse, scale=SCALE)[0]
    assert_same(out, formula(*inputs[:3], pse=pse), *inputs)
    for pse_type in (0, 1):
        out = torch_npu.npu_fusion_attention_v2(
            query, key, value, HEADS, "BNSD", pse=pse, scale=SCALE, pse_type=pse_type
        )[0]
        assert_same(out, formula(*inputs[:3], pse=pse, scaled_pse=pse_type == 1), *inputs)


@pytest.mark.parametrize("name", ["", "_v2", "_v3"])
def test_sequences_in_a_row(name):
    query, key, value = leaf(5, HEADS, WIDTH), leaf(7, 1, WIDTH), leaf(7, 1, WIDTH)
    ends = {"actual_seq_qlen": [2, 5], "actual_seq_kvlen": [3, 7]}
    if name == "_v3":
        ends = {which: torch.tensor(end) for which, end in ends.items()}
    run = getattr(torch_npu, f"npu_fusion_attention{name}")
    for options, shift in (({"sparse_mode": 3}, 1), ({"sparse_mode": 2}, 0), ({"sparse_mode": 0}, 0)):
        mask = torch.ones(3, 4, dtype=torch.bool).triu(1) if options["sparse_mode"] == 0 else SQUARE
        out = run(query, key, value, HEADS, "TND", scale=SCALE, atten_mask=mask.npu(), **options, **ends)
        assert len(out) == (6 if name == "_v3" else 7)
        assert out[1].shape == (5, HEADS, 8)
        parts = [
            formula(
                *(data[cut].transpose(0, 1)[None] for data, cut in ((query, q), (key, k), (value, k))),
                mask_of(q.stop - q.start, k.stop - k.start, 99, 0, shift),
            )[0].transpose(0, 1)
            for q, k in ((slice(0, 2), slice(0, 3)), (slice(2, 5), slice(3, 7)))
        ]
        assert_same(out[0], torch.cat(parts), query, key, value)


def test_as_torch_has_it():
    query, key, value = (leaf(2, HEADS, 4, WIDTH) for _ in range(3))
    out = torch_npu.npu_fusion_attention(
        query, key, value, HEADS, "BNSD", scale=WIDTH**-0.5, sparse_mode=2, atten_mask=SQUARE.npu()
    )[0]
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert_same(out, expected, query, key, value)


def test_dropout_of_the_weights():
    data = torch.ones(1, HEADS, 64, 64).npu()
    out = torch_npu.npu_fusion_attention(data, data, data, HEADS, "BNSD", keep_prob=0.5)[0]
    assert 0.9 < out.mean().item() < 1.1
    assert out.std().item() > 0.01


@pytest.mark.parametrize(
    "options", [{"sparse_mode": 6}, {"prefix": [1]}, {"sink": torch.zeros(HEADS)}, {"pse_type": 2}]
)
def test_what_is_lacking_is_named(options):
    data = torch.ones(1, HEADS, 4, WIDTH).npu()
    with pytest.raises(NotImplementedError, match=f"lacks npu_fusion_attention with {next(iter(options))}"):
        torch_npu.npu_fusion_attention_v2(data, data, data, HEADS, "BNSD", **options)


@pytest.mark.parametrize("layout", ["BNSD", "TND"])
def test_block_sparse_attention(layout):
    """Of a dense attention with the blocks hidden; sequences of TND have their lengths in the lists."""
    lengths, heads = ([12, 12], (4, 2)) if layout == "BNSD" else ([5, 12], (4, 2))
    mask = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]]).expand(2, 4, 3, 3)
    hidden = ~mask.bool().repeat_interleave(4, 2).repeat_interleave(4, 3)
    parts = [[torch.randn(1, count, size, 8) for count in (heads[0], heads[1], heads[1])] for size in lengths]

    def joined(which):
        each = [part[which] for part in parts]
        whole = torch.cat(each) if layout == "BNSD" else torch.cat([one[0].transpose(0, 1) for one in each])
        return whole.npu().requires_grad_()

    query, key, value = (joined(which) for which in range(3))
    options = {"actual_seq_lengths": lengths, "actual_seq_lengths_kv": lengths} if layout == "TND" else {}
    out, sums = torch_npu.npu_block_sparse_attention(
        *(query, key, value, mask.to(torch.int8).npu(), [4, 4]),
        q_input_layout=layout,
        kv_input_layout=layout,
        num_key_value_heads=2,
        scale_value=0.3,
        softmax_lse_flag=1,
        **options,
    )
    assert type(out.grad_fn).__name__ == "NpuBlockSparseAttentionBackward0"
    out.sum().backward()
    for index, size in enumerate(lengths):
        one = [part.clone().requires_grad_() for part in parts[index]]
        keys, values = (part.repeat_interleave(2, 1) for part in one[1:])
        scores = (one[0] @ keys.transpose(2, 3) * 0.3).masked_fill(hidden[index, :, :size, :size], -1e10)
        expected = scores.softmax(-1) @ values
        expected.sum().backward()
        start = sum(lengths[:index])

        def of_sequence(data, index=index, start=start, size=size):
            return data[index].cpu() if layout == "BNSD" else data[start : start + size].transpose(0, 1).cpu()

        torch.testing.assert_close(of_sequence(out), expected[0])
        torch.testing.assert_close(of_sequence(sums)[..., 0], scores.logsumexp(-1)[0])
        for data, part in zip((query, key, value), one):
            torch.testing.assert_close(of_sequence(data.grad), part.grad[0])


def test_what_is_dropped_belongs_to_a_seed_and_an_offset():
    query, key, value = (torch.randn(1, HEADS, 16, 8).npu().requires_grad_() for _ in range(3))
    torch.npu.manual_seed(5)
    out, largest, total, _, seed, offset, count = torch_npu.npu_fusion_attention(
        query, key, value, HEADS, "BNSD", keep_prob=0.5
    )
    assert (seed, offset, count) == (5, 0, HEADS * 16 * 16)
    mask = torch_npu._npu_dropout_gen_mask(query, [count], 0.5, seed, offset)
    bits = torch.tensor([byte >> bit & 1 for byte in mask.tolist() for bit in range(8)][:count])
    weights = (query @ key.transpose(-1, -2)).softmax(-1) * bits.view(1, HEADS, 16, 16).npu() * 2
    torch.testing.assert_close(out, weights @ value)
    again = torch_npu.npu_fusion_attention(query, key, value, HEADS, "BNSD", keep_prob=0.5)
    assert again[5] > offset
    assert not torch.equal(again[0], out)
    given = torch_npu.npu_fusion_attention(query, key, value, HEADS, "BNSD", keep_prob=0.5, dropout_mask=mask)
    assert torch.equal(given[0], out)
    gradient = torch.randn_like(out)
    expected = torch.autograd.grad(out, (query, key, value), gradient)
    found = torch_npu.npu_fusion_attention_grad(
        query, key, value, gradient, HEADS, "BNSD", softmax_max=largest, softmax_sum=total, attention_in=out,
        keep_prob=0.5, seed=seed, offset=offset, numels=count,
    )  # fmt: skip
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("layout", ["BSND", "BSH", "SBH"])
def test_results_are_laid_out_anew(layout):
    data = torch.randn(2, 4, HEADS, 8) if layout == "BSND" else torch.randn(2, 4, HEADS * 8)
    found = torch_npu.npu_fusion_attention(data.npu(), data.npu(), data.npu(), HEADS, layout)
    assert all(each.is_contiguous() for each in found[:3])  # torch_npu makes tensors for them
    found[1].zero_()


def test_autocast_reaches_into_no_kernel():
    query, hidden = leaf(2, HEADS, 5, WIDTH), mask_of(5, 5, 9, 0)

    def attend():
        return torch_npu.npu_fusion_attention(
            query, query, query, HEADS, "BNSD", scale=SCALE, atten_mask=hidden
        )[0]

    plain = attend()
    with torch.autocast("npu", dtype=torch.bfloat16):
        inside = attend()
    assert torch.equal(plain, inside)
    assert_same(inside, formula(query, query, query, hidden), query)
