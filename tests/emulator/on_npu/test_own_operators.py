"""Operators of torch_npu's own for inference, quantization, experts and boxes, against plain torch."""

from __future__ import annotations

import math

import pytest
import torch
import torch_npu
from torch.nn import functional


def close(result, expected, **how):
    torch.testing.assert_close(result.cpu(), expected, **how)


QUERY, KEY, VALUE = (torch.randn(2, heads, 5, 8) for heads in (4, 2, 2))


def expected_attention(hidden=None, scale=8**-0.5):
    seen = None if hidden is None else ~hidden
    return functional.scaled_dot_product_attention(QUERY, KEY, VALUE, seen, scale=scale, enable_gqa=True)


def test_attention_of_a_prompt():
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    options = {"num_heads": 4, "num_key_value_heads": 2, "scale_value": 8**-0.5, "input_layout": "BNSD"}
    data = (QUERY.npu(), KEY.npu(), VALUE.npu())
    out = torch_npu.npu_prompt_flash_attention(*data, atten_mask=causal.npu(), next_tokens=65535, **options)
    close(out, expected_attention(causal))
    out, sums = torch_npu.npu_fused_infer_attention_score(
        *data, num_heads=4, num_key_value_heads=2, scale=8**-0.5, input_layout="BNSD", softmax_lse_flag=True
    )
    close(out, expected_attention())
    scores = QUERY @ KEY.repeat_interleave(2, 1).mT * 8**-0.5
    close(sums, scores.logsumexp(-1, keepdim=True))


def test_attention_of_one_token_sees_what_is_there():
    out = torch_npu.npu_incre_flash_attention(
        *(data.npu() for data in (QUERY[:, :, :1], KEY, VALUE)),
        num_heads=4,
        num_key_value_heads=2,
        scale_value=8**-0.5,
        input_layout="BNSD",
        actual_seq_lengths=[3, 5],
    )
    hidden = torch.arange(5) >= torch.tensor([3, 5])[:, None]
    close(out, expected_attention(hidden[:, None, None].expand(2, 1, 5, 5))[:, :, :1])


def test_what_is_not_emulated_is_named():
    with pytest.raises(NotImplementedError, match="npu_fused_infer_attention_score with block_table"):
        torch_npu.npu_fused_infer_attention_score(
            QUERY.npu(), KEY.npu(), VALUE.npu(), num_heads=4, block_table=torch.zeros(1).int().npu()
        )


def test_the_derivative_of_attention_by_itself():
    data = [each.clone().requires_grad_() for each in (QUERY, KEY, VALUE)]
    out = functional.scaled_dot_product_attention(*data, enable_gqa=True)
    out.sum().backward()
    found = torch_npu.npu_fusion_attention_grad(
        QUERY.npu(), KEY.npu(), VALUE.npu(), torch.ones_like(QUERY).npu(), 4, "BNSD", scale_value=8**-0.5
    )
    for gradient, each in zip(found, data):
        close(gradient, each.grad)


def test_quantization():
    data = torch.randn(3, 16)
    quantized, scale = torch_npu.npu_dynamic_quant(data.half().npu())
    largest = data.half().float().abs().amax(-1)
    close(scale, largest / 127)
    close(quantized.float() * scale[:, None], data.half().float(), atol=0.02, rtol=0)
    expected = torch.quantize_per_channel(data, torch.rand(3) + 0.1, torch.tensor([1, 2, 3]), 0, torch.qint8)
    scales, zeros = expected.q_per_channel_scales(), expected.q_per_channel_zero_points()
    result = torch_npu.npu_quantize(data.npu(), scales.float().npu(), zeros.int().npu(), torch.qint8, 0)
    close(result, expected.int_repr(), atol=1, rtol=0)
    one, other = torch.randint(-5, 5, (2, 4)).to(torch.int8), torch.randint(-5, 5, (4, 3)).to(torch.int8)
    product = torch_npu.npu_quant_matmul(
        one.npu(), other.npu(), torch.full((3,), 0.5).npu(), output_dtype=torch.float16
    )
    close(product, ((one.int() @ other.int()) * 0.5).half())


def test_experts():
    """Route tokens to their experts, and back: as if each token went through its experts in turn."""
    tokens, weights = torch.randn(4, 6).npu(), torch.randn(3, 6, 6).npu()
    shares, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(torch.randn(4, 3).npu(), k=2)
    expanded, places, order = torch_npu.npu_moe_init_routing(tokens, rows, experts, 4)
    ends = torch_npu.npu_moe_compute_expert_tokens(order, 3)
    (result,) = torch_npu.npu_grouped_matmul(
        [expanded], [weights], group_list=ends.long(), split_item=3, group_type=0
    )
    joined = torch_npu.npu_moe_finalize_routing(result, None, None, None, shares, places, experts)
    expected = sum(
        shares[:, i, None].cpu()
        * torch.stack([t @ weights[e].cpu() for t, e in zip(tokens.cpu(), experts[:, i])])
        for i in range(2)
    )
    close(joined, expected)


def test_tokens_come_back_in_their_places():
    tokens = torch.randn(4, 3)
    permuted, order = torch_npu.npu_moe_token_permute(
        tokens.npu(), torch.tensor([[1, 0], [2, 1], [0, 2], [0, 1]]).npu()
    )
    assert permuted.shape == (8, 3)
    halves = torch.full((4, 2), 0.5).npu()
    close(torch_npu.npu_moe_token_unpermute(permuted, order, halves), tokens)


def test_boxes():
    one, other = torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 1, 3, 3], [0, 0, 2, 2]])
    close(torch_npu.npu_iou(one.npu(), other.npu()), torch.tensor([[1 / 7], [1.0]]))
    generalized = torch_npu.npu_giou(one.t().npu(), other[:1].t().npu())
    close(generalized, torch.tensor([[1 / 7 - 2 / 9]]))
    distance = torch_npu.npu_diou(one.t().npu(), other[:1].t().npu())
    close(distance, torch.tensor([[1 / 7 - 2 / 18]]))
    image = torch.arange(1.0, 37).view(1, 1, 6, 6).npu()
    pooled = torch_npu.npu_roi_align(image, torch.tensor([[0, -2.0, -2, 22, 22]]).npu(), 0.25, 3, 3, 2, 0)
    close(pooled[0, 0], torch.tensor([[4.5, 6.5, 8.5], [16.5, 18.5, 20.5], [28.5, 30.5, 32.5]]))
    regions = torch.tensor([[0, -2.0, -2, 22, 22]]).npu()
    aligned = torch_npu.npu_roi_align(image, regions, 0.25, 3, 3, 2, 3)
    close(aligned[0, 0], torch.tensor([[2.75, 4.5, 6.5], [13.25, 15, 17], [25.25, 27, 29]]))
    back = torch_npu.npu_roi_alignbk(torch.ones_like(aligned), regions, image.shape, 3, 3, 0.25, 2, 3)
    close(back[0, 0, 0], torch.tensor([0.5625, 0.375, 0.375, 0.375, 0.375, 0.1875]))


def test_norms_and_layouts():
    data, gamma, beta = torch.randn(2, 3, 8), torch.randn(8), torch.randn(8)
    normed = torch_npu.npu_add_layer_norm(*(each.npu() for each in (data, data, gamma, beta)))
    close(normed[0], functional.layer_norm(2 * data, (8,), gamma, beta))
    deep = torch_npu.npu_deep_norm(*(each.npu() for each in (data, data, beta, gamma)), alpha=0.5)
    close(deep[2], functional.layer_norm(1.5 * data, (8,), gamma, beta, 1e-6))
    close(
        torch_npu.npu_pad(torch.ones(1, 2).npu(), (1, 0, 0, 2)),
        functional.pad(torch.ones(1, 2), (0, 2, 1, 0)),
    )
    close(torch_npu.npu_one_hot(torch.tensor([1, 3]).npu(), depth=3), torch.tensor([[0, 1, 0], [0, 0, 0.0]]))
    values, places = torch_npu.npu_max(data.npu(), 1)
    assert (places.dtype, torch.equal(values.cpu(), data.amax(1))) == (torch.int32, True)
    written = torch_npu.npu_scatter_nd_update(
        torch.zeros(3, 2).npu(), torch.tensor([[2], [0]]).npu(), torch.ones(2, 2).npu()
    )
    close(written, torch.tensor([[1.0, 1], [0, 0], [1, 1]]))
    cache = torch.zeros(2, 1, 4, 2).npu()
    assert (
        torch_npu.scatter_update_(cache, torch.tensor([0, 2]).npu(), torch.ones(2, 1, 1, 2).npu(), -2)
        is cache
    )
    assert cache.sum(-1).tolist() == [[[2, 0, 0, 0]], [[0, 0, 2, 0]]]
    assert math.isclose(
        float(torch_npu.npu_gelu_mul(torch.ones(1, 2).npu())), float(functional.gelu(torch.ones(1)))
    )
