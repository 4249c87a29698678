"""Attention to selected blocks, and quantized products by groups that are gated."""

from __future__ import annotations

import torch
import torch_npu
from torch.nn import functional


def attended(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Two sequences of 2 queries and 4 blocks of 2 keys; the last block has one key in the second of them."""
    results = []
    for row in range(4):
        first, end = (0, 8) if row < 2 else (8, 15)
        places = [place for block in (3, 0, 2) for place in (first + 2 * block, first + 2 * block + 1)]
        places = [place for place in places if place < end]
        keys, values = (each[places].repeat_interleave(2, 1).transpose(0, 1) for each in (key, value))
        scores = (keys @ query[row][..., None])[..., 0] * 0.5
        results.append((scores.softmax(1)[:, None] @ values)[:, 0])
    return torch.stack(results)


def test_each_query_sees_the_blocks_selected_for_it():
    torch.manual_seed(0)
    own = [torch.randn(size).requires_grad_() for size in ((4, 4, 6), (15, 2, 6), (15, 2, 5))]
    expected, by = attended(*own), torch.randn(4, 4, 5)
    wanted = torch.autograd.grad(expected, own, by)
    given = [each.detach().npu().requires_grad_() for each in own]
    how = (torch.tensor([3, 0, 2]).int().expand(4, 2, 3).npu(), 0.5, 4, 2, 3)
    lengths = {"actual_seq_qlen": [2, 4], "actual_seq_kvlen": [8, 15]}
    out, largest, total = torch_npu.npu_nsa_select_attention(*given, *how, **lengths)
    torch.testing.assert_close(out.cpu(), expected)
    assert largest.shape == total.shape == (4, 4, 8)
    assert (total >= 1).all()
    derived = torch.autograd.grad(out, given, by.npu())
    gradients = torch_npu.npu_nsa_select_attention_grad(
        by.npu(), *given, out, largest, total, *how, **lengths
    )
    for one, other, right in zip(derived, gradients, wanted):
        torch.testing.assert_close(one.cpu(), right)
        torch.testing.assert_close(other.cpu(), right)


def test_rows_of_groups_are_multiplied_gated_and_quantized():
    torch.manual_seed(0)
    data, weight = torch.randint(-9, 9, (5, 32)).char(), torch.randint(-9, 9, (2, 32, 64)).char()
    scale, rows = torch.rand(2, 64), torch.rand(5)
    result, scales, _ = torch_npu.npu_grouped_matmul_swiglu_quant(
        data.npu(), weight.npu(), torch.tensor([2, 4]).npu(), scale.npu(), rows.npu()
    )
    for row in range(4):
        total = (data[row].float() @ weight[row // 2].float()) * scale[row // 2] * rows[row]
        whole = functional.silu(total[:32]) * total[32:]
        torch.testing.assert_close(scales[row].cpu(), whole.abs().max() / 127)
        assert (result[row].cpu() - whole / scales[row].cpu()).abs().max() <= 0.5001
    again = torch_npu.npu_grouped_matmul_swiglu_quant_v2(
        data.npu(), [weight.npu()], [scale.npu()], rows.npu(), torch.tensor([2, 2]).npu(), group_list_type=1
    )
    assert torch.equal(again[0][:4], result[:4])
    torch.testing.assert_close(again[1][:4], scales[:4])


def test_weights_of_another_format_keep_the_order_of_their_elements():
    before = torch_npu._C._npu_getOption("ALLOW_INTERNAL_FORMAT")
    torch.npu.config.allow_internal_format = True
    try:
        weight = torch.randint(-9, 9, (2, 32, 64)).char().npu()
        packed = torch_npu.npu_format_cast(weight, 29).view(2, 2, 2, 16, 32)
        given = (torch.tensor([1, 2]).npu(), torch.rand(2, 64).npu(), torch.rand(2).npu())
        data = torch.randint(-9, 9, (2, 32)).char().npu()
        found = torch_npu.npu_grouped_matmul_swiglu_quant(data, packed, *given)
        for one, other in zip(found[:2], torch_npu.npu_grouped_matmul_swiglu_quant(data, weight, *given)):
            torch.testing.assert_close(one, other)
    finally:
        torch.npu.config.allow_internal_format = before == b"enable"
