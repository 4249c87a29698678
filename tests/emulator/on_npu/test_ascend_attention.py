"""The module for flash_attn and xformers.ops: values and gradients are those of plain attention."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import torch

from migrator.data_folders import data_folder

HEADS, WIDTH = 4, 8


@pytest.fixture(scope="module")
def own():
    file = data_folder("reports") / "modules" / "ascend_attention.py"
    spec = importlib.util.spec_from_file_location("ascend_attention", file)
    module = sys.modules["ascend_attention"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["ascend_attention"]


def drawn(rows, heads=HEADS, batch=2):
    return torch.randn(batch, rows, heads, WIDTH)


def plain(q, k, v, hidden=None, scale=None):
    """Attention in plain torch; a mask is True where it hides."""
    groups = q.shape[2] // k.shape[2]
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(groups, 1) for each in (k, v))
    scores = q @ k.transpose(-1, -2) * (WIDTH**-0.5 if scale is None else scale)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf")) if hidden.dtype == torch.bool else scores + hidden
    return (scores.softmax(-1) @ v).transpose(1, 2)


def hidden(rows, columns, shift=0, before=None):
    distance = torch.arange(columns) - torch.arange(rows)[:, None] - shift
    return (distance > 0) | (distance < -(columns if before is None else before))


def same(function, expected, *tensors):
    """Both give the same, and the same gradients to each tensor."""
    own = [each.detach().npu().requires_grad_() for each in tensors]
    theirs = [each.detach().requires_grad_() for each in tensors]
    out, wanted = function(*own), expected(*theirs)
    torch.testing.assert_close(out.cpu(), wanted, rtol=1e-4, atol=1e-5)
    weights = torch.randn_like(wanted)
    (out * weights.npu()).sum().backward()
    (wanted * weights).sum().backward()
    for got, one in zip(own, theirs):
        torch.testing.assert_close(got.grad.cpu(), one.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("key_heads", [HEADS, 2])
@pytest.mark.parametrize(
    ("options", "mask"),
    [
        ({}, None),
        ({"causal": True}, hidden(5, 7, 2)),
        ({"softmax_scale": 0.2, "causal": True, "window_size": (2, 0)}, hidden(5, 7, 2, 2)),
    ],
)
def test_flash_attention(own, key_heads, options, mask):
    scale = options.get("softmax_scale")
    same(
        lambda q, k, v: own.flash_attn_func(q, k, v, **options),
        lambda q, k, v: plain(q, k, v, mask, scale),
        drawn(5),
        drawn(7, key_heads),
        drawn(7, key_heads),
    )


def test_packed(own):
    qkv = torch.randn(2, 5, 3, HEADS, WIDTH)
    expected = plain(*qkv.unbind(2), hidden(5, 5))
    out = own.flash_attn_qkvpacked_func(qkv.npu(), 0.0, causal=True)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-5)
    q, kv = qkv[:, :, 0].npu(), qkv[:, :, 1:].npu()
    torch.testing.assert_close(own.flash_attn_kvpacked_func(q, kv, causal=True), out)


def test_sequences_one_behind_the_other(own):
    lengths = [3, 5]
    ends = torch.tensor([0, 3, 8], dtype=torch.int32).npu()

    def expected(q, k, v):
        parts = zip(*(each.split(lengths, dim=1) for each in (q, k, v)))
        return torch.cat([plain(*each, hidden(*[each[0].shape[1]] * 2)) for each in parts], dim=1)

    def packed(q, k, v):
        tensors = (each[0] for each in (q, k, v))
        return own.flash_attn_varlen_func(*tensors, ends, ends, 5, 5, causal=True).unsqueeze(0)

    def by_mask(q, k, v):
        mask = own.fmha.BlockDiagonalMask.from_seqlens(lengths).make_causal()
        return own.memory_efficient_attention(q, k, v, attn_bias=mask)

    tensors = [drawn(8, batch=1) for _ in range(3)]
    same(packed, expected, *tensors)
    same(by_mask, expected, *tensors)


def test_memory_efficient_attention(own):
    tensors = [drawn(5) for _ in range(3)]
    bias = torch.randn(2, HEADS, 5, 5)
    same(own.memory_efficient_attention, plain, *tensors)
    masked = own.LowerTriangularMask()
    same(
        lambda *x: own.memory_efficient_attention(*x, attn_bias=masked),
        lambda *x: plain(*x, hidden(5, 5)),
        *tensors,
    )
    same(
        lambda *x: own.memory_efficient_attention(*x, bias.npu(), scale=0.3),
        lambda *x: plain(*x, bias, 0.3),
        *tensors,
    )
    flat = [each.transpose(1, 2).flatten(0, 1) for each in tensors]
    out = own.memory_efficient_attention(*(each.npu() for each in flat), op=own.MemoryEfficientAttentionOp)
    expected = plain(*tensors).transpose(1, 2).flatten(0, 1)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_tensors_of_several_lengths_are_put_together_and_split_again(own):
    tensors = [torch.randn(2, 3, HEADS, WIDTH), torch.randn(1, 4, HEADS, WIDTH)]
    mask, together = own.BlockDiagonalMask.from_tensor_list([each.npu() for each in tensors])
    assert together.shape == (1, 10, HEADS, WIDTH)
    out = mask.split(own.memory_efficient_attention(together, together, together, attn_bias=mask))
    for got, each in zip(out, tensors):
        torch.testing.assert_close(got.cpu(), plain(each, each, each), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(own, interleaved):
    angles = torch.rand(9, 2)
    x = drawn(5)

    def expected(x):
        turn = torch.polar(torch.ones(5, 2), angles[3:8])[:, None]
        part = x[..., :4]
        pairs = part.unflatten(-1, (2, 2)) if interleaved else part.unflatten(-1, (2, 2)).transpose(-1, -2)
        out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
        out = out if interleaved else out.transpose(-1, -2)
        return torch.cat((out.flatten(-2), x[..., 4:]), -1)

    cos, sin = angles.cos().npu(), angles.sin().npu()
    options = {"interleaved": interleaved, "seqlen_offsets": 3}
    same(lambda x: own.apply_rotary_emb(x, cos, sin, **options), expected, x)


def test_norm(own):
    weight = torch.rand(WIDTH)
    same(
        lambda x, w: own.rms_norm(x, w, 1e-6),
        lambda x, w: torch.rms_norm(x, (WIDTH,), w, 1e-6),
        drawn(3),
        weight,
    )


@pytest.mark.parametrize("more", [{"softcap": 1.0}, {"return_attn_probs": True}])
def test_what_npus_do_not_have_raises(own, more):
    q = drawn(3).npu()
    with pytest.raises(NotImplementedError):
        own.flash_attn_func(q, q, q, **more)


def test_index_select_cat_and_scaled_index_add(own) -> None:
    def selected(a, b):
        return torch.cat([a[[2, 0]].flatten(), b[[1]].flatten()])

    places = torch.tensor([2, 0]), torch.tensor([1])
    x, y = torch.randn(3, 4), torch.randn(2, 5)
    same(lambda a, b: own.index_select_cat([a, b], [each.npu() for each in places]), selected, x, y)

    def added(a, b, scaling):
        return a.index_add(0, places[0], scaling * b, alpha=0.5)

    parts = torch.randn(3, 2, 4), torch.randn(2, 2, 4), torch.randn(4)
    same(lambda a, b, c: own.scaled_index_add(a, places[0].npu(), b, c, alpha=0.5), added, *parts)
