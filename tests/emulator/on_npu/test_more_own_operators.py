"""Operators of torch_npu's own for training: optimizers, losses, dropout, recurrent layers."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch.nn import functional


def test_adam_is_that_of_torch():
    parameter, gradient = torch.randn(9), torch.randn(9)
    expected = parameter.clone().requires_grad_()
    optimizer = torch.optim.AdamW([expected], lr=0.1, weight_decay=0.2)
    expected.grad = gradient.clone()
    optimizer.step()
    out = (parameter.npu(), torch.zeros(9).npu(), torch.zeros(9).npu())
    torch_npu.npu_apply_adam_w(1, 1, 0.1, 0.2, 0.9, 0.999, 1e-8, gradient.npu(), None, False, False, out=out)
    torch.testing.assert_close(out[0].cpu(), expected.detach())


def test_adam_rounds_halves_as_the_operator_is_defined():
    moments, gradient = torch.randn(200).half(), torch.randn(200).half()
    out = tuple(each.npu() for each in (moments, moments, moments.abs()))
    torch_npu.npu_apply_adam(0.9, 0.9, 0.2, 0.2, 0.2, 0.2, gradient.npu(), False, False, out=out)
    second = moments.abs()
    assert torch.equal(out[1].cpu(), moments + (moments - gradient) * (0.2 - 1))
    assert torch.equal(out[2].cpu(), second + (second - gradient * gradient) * (0.2 - 1))


def test_a_loss_over_a_part_of_a_vocabulary():
    data, weight, target = torch.randn(9, 4), torch.randn(6, 4), torch.randint(0, 6, (9,))
    largest, total, predicted, mask, here, logits = torch_npu.npu_fused_linear_online_max_sum(
        data.npu(), weight.npu(), target.npu(), 0, 5, return_logits=True
    )
    loss, softmax = torch_npu.npu_fused_cross_entropy_loss_with_max_sum(
        largest, total, predicted, vocab_parallel_logits=logits
    )
    data, weight = data.requires_grad_(), weight.requires_grad_()
    expected = functional.cross_entropy(data @ weight.t(), target, reduction="none")
    torch.testing.assert_close(loss.cpu(), expected.detach())
    by = torch.randn(9)
    gradients = torch_npu.npu_fused_linear_cross_entropy_loss_with_max_sum_backward(
        by.npu(), data.detach().npu(), weight.detach().npu(), mask, here, softmax=softmax
    )
    for found, wanted in zip(gradients, torch.autograd.grad(expected, (data, weight), by)):
        torch.testing.assert_close(found.cpu(), wanted)
    assert torch_npu.npu_fused_linear_online_max_sum(
        data.detach().npu(), weight.detach().npu(), torch.full((9,), 7).npu(), 0, 5
    )[3].tolist() == [255, 255]


def test_a_mask_of_bits_drops_what_it_says():
    data = torch.ones(1000).npu()
    mask = torch_npu._npu_dropout_gen_mask(data, [1000], 0.5, 3, 4)
    again = torch_npu._npu_dropout_gen_mask(data, [1000], 0.5, 3, 4)
    assert mask.numel() == 128
    assert torch.equal(mask, again)
    dropped = torch_npu.npu_dropout_do_mask(data, mask, 0.5)[0].cpu()
    bits = torch.tensor([(int(byte) >> bit) & 1 for byte in mask.tolist() for bit in range(8)])[:1000]
    assert torch.equal(dropped, bits * 2.0)
    assert 400 < int(bits.sum()) < 600


def test_recurrent_layers_are_those_of_torch():
    cpu = torch.nn.LSTM(3, 4)
    data, start = torch.randn(5, 2, 3), torch.zeros(1, 2, 4)
    expected, (_, cell) = cpu(data)
    weight = torch.cat((cpu.weight_ih_l0, cpu.weight_hh_l0), 1).t().detach()
    bias = (cpu.bias_ih_l0 + cpu.bias_hh_l0).detach()
    given = [each.contiguous().npu() for each in (data, weight, bias, torch.tensor(5), start, start)]
    found = torch_npu.npu_lstm(*given, True, 1, 0.0, True, False, False, False, False)
    torch.testing.assert_close(found[0].cpu(), expected.detach())
    torch.testing.assert_close(found[2][-1].cpu(), cell[0].detach())
    with pytest.raises(NotImplementedError, match="npu_lstm with bidirectional"):
        torch_npu.npu_lstm(*given, True, 1, 0.0, True, True, False, False, False)


def test_parts_of_tensors():
    data = torch.arange(12).view(3, 4).npu()
    assert torch_npu.npu_indexing(data, [0, 1], [2, 3], [1, 1]).tolist() == [[1, 2], [5, 6]]
    signs = torch.tensor([1.0, -1, 2, -2, 3, -3, 4, -4, 5]).npu()
    packed = torch_npu.npu_sign_bits_pack(signs, 1)
    assert packed.tolist() == [[0b01010101, 1]]
    unpacked = torch_npu.npu_sign_bits_unpack(packed[0], 1, torch.float32)
    assert unpacked[0, :9].tolist() == signs.sign().tolist()


def test_experts_of_the_best_groups():
    scores = torch.tensor([[0.1, 0.9, 0.8, 0.7, 0.2, 0.3, 0.95, 0.0]]).logit().npu()
    weights, experts, _ = torch_npu.npu_moe_gating_top_k(
        scores, 2, k_group=1, group_count=2, group_select_mode=1, norm_type=1
    )
    assert experts.tolist() == [[1, 2]]
    torch.testing.assert_close(weights.cpu(), torch.tensor([[0.9, 0.8]]) / 1.7)
    rows, places, counts, _ = torch_npu.npu_moe_init_routing_v2(
        torch.arange(3.0)[:, None].npu(),
        torch.tensor([[1], [0], [1]]).int().npu(),
        active_num=3,
        expert_num=2,
        active_expert_range=[0, 2],
        expert_tokens_num_type=1,
        expert_tokens_num_flag=True,
    )
    assert rows[:, 0].tolist() == [1, 0, 2]
    assert places.tolist() == [1, 0, 2]
    assert counts.tolist() == [1, 2]


def test_results_go_into_given_tensors():
    given = torch.empty(0).npu()
    torch_npu.npu_sort_v2(torch.tensor([3.0, 1.0, 2.0]).npu(), out=given)
    assert given.tolist() == [1, 2, 3]


def test_what_is_traced_stays_an_operator():
    """Compilers for NPUs know the operator, not what the emulator makes it of."""
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(torch_npu.npu_silu)(torch.randn(3).npu())
    assert "npu_silu" in graph.code


def test_the_derivative_of_a_cast_is_that_of_torch_npu():
    cast = torch_npu.npu_dtype_cast(torch.randn(3).npu().requires_grad_(), torch.half)
    assert "NpuDtypeCast" in str(cast.grad_fn)
    cast.sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_derivative_of_a_cast_has_one_itself(create_graph):
    """As torch_npu's own test asks, of a gradient that needs none."""
    data = torch.randn(3, 3, requires_grad=True).npu()
    cast = torch_npu.npu_dtype_cast(data, torch.half)
    (grad,) = torch.autograd.grad(cast, data, torch.ones_like(cast), create_graph=create_graph)
    assert (grad.grad_fn is not None) == create_graph
    assert grad.dtype == torch.float32


def test_a_list_with_tensors_of_the_host():
    tensors = [torch.tensor([-2.0]), torch.tensor([3.0]).npu()]
    torch._foreach_sign_(tensors)
    assert [each.item() for each in tensors] == [-1, 1]
    assert [each.device.type for each in torch._foreach_neg(tensors)] == ["cpu", "npu"]


def test_a_total_length_has_no_effect_on_padding():
    """As op-plugin's `_pad_packed_sequence`."""
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    packed = pack_padded_sequence(torch.randn(3, 2, 4).npu(), [3, 2])
    assert pad_packed_sequence(packed, total_length=5)[0].shape == (3, 2, 4)
    with pytest.raises((RuntimeError, ValueError), match="total_length"):
        pad_packed_sequence(packed, total_length=2)


def test_eight_weights_of_four_bits_are_one_number():
    weight, data = torch.randint(-8, 8, (16, 24), dtype=torch.int32), torch.randn(3, 16).half()
    packed = torch_npu.npu_convert_weight_to_int4pack(weight.npu())
    assert packed.shape == (16, 3)
    assert int(packed[0, 0]) & 0xFFF == sum((int(weight[0, i]) & 15) << 4 * i for i in range(3))
    scale, offset = torch.rand(24).half(), torch.randn(24).half()
    expected = data.float() @ ((weight.half() + offset) * scale).float()
    found = torch_npu.npu_weight_quant_batchmatmul(data.npu(), packed, scale.npu(), offset.npu())
    torch.testing.assert_close(found.cpu().float(), expected, rtol=1e-3, atol=1e-2)
    turned = torch_npu.npu_convert_weight_to_int4pack(weight.t().contiguous().npu()).t()
    again = torch_npu.npu_weight_quant_batchmatmul(data.npu(), turned, scale.npu(), offset.npu())
    assert torch.equal(again, found)
    with pytest.raises(RuntimeError, match="multiple of 8, but it is 20"):
        torch_npu.npu_convert_weight_to_int4pack(weight[:, :20].contiguous().npu())


def test_bytes_by_weights_of_four_bits_with_a_scale_for_each_group():
    data = torch.randint(-128, 128, (2, 64), dtype=torch.int8)
    weight = torch.randint(-8, 8, (64, 8), dtype=torch.int32)
    scale, rows, offset = torch.rand(2, 8), torch.rand(2, 1), torch.randn(8)
    found = torch_npu.npu_quant_matmul(
        data.npu(), torch_npu.npu_convert_weight_to_int4pack(weight.npu()), scale.npu(), offset=offset.npu(),
        pertoken_scale=rows.npu(), output_dtype=torch.float16, group_sizes=[0, 0, 32],
    )  # fmt: skip
    high, low = data.int() >> 4, (data.int() & 15) - 8
    parts = [(part.view(2, 2, 32).transpose(0, 1) @ weight.view(2, 32, 8)).float() for part in (high, low)]
    expected = (((parts[0] * 16 + parts[1]) * scale[:, None]).sum(0) + offset) * rows
    torch.testing.assert_close(found.cpu().float(), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("with_offset", [True, False])
def test_a_scale_is_searched_that_loses_least(with_offset):
    data = torch.linspace(-0.5, 1, 200)
    counts = torch.histc(data, 128, -0.5, 1).cumsum(0).int()
    ends = (torch.tensor([-0.5]).npu(), torch.tensor([1.0]).npu())
    search = (0.999999, 0.999999, 0.7, 1.3, 0.01)
    scale, offset = torch_npu.npu_ifmr(data.npu(), *ends, counts.npu(), *search, with_offset)
    assert scale.shape == offset.shape == (1,)
    assert float(offset) == (-43 if with_offset else 0)
    assert float(scale) == pytest.approx(1.5 / 255 if with_offset else 1 / 127, rel=0.03)


def test_what_torch_npu_has_no_derivative_for_has_none():
    data = torch.randn(2, 3).npu().requires_grad_()
    torch._C._set_autograd_fallback_mode("nothing")
    try:
        assert not torch_npu.npu_pad(data, (1, 1, 1, 1)).requires_grad
    finally:
        torch._C._set_autograd_fallback_mode("warn")
    torch_npu.npu_pad(data, (1, 1, 1, 1)).sum().backward()
    assert data.grad is None


def test_the_number_of_a_class_keeps_its_dtype():
    numbers = torch.tensor([[0, 2], [1, 5]])
    hot = functional.one_hot(numbers.int().npu(), 3)
    assert hot.dtype == torch.int32  # torch's own, on the CPU, is int64, and takes no int32
    assert torch.equal(hot[0].cpu().long(), functional.one_hot(numbers[0], 3))
    assert hot[1, 1].tolist() == [0, 0, 0]  # of no class
    assert functional.one_hot(numbers.npu()).shape == (2, 2, 6)
    with pytest.raises(RuntimeError, match="can not infer total number of classes"):
        functional.one_hot(numbers[:0].npu())
    whole = torch.compile(lambda given: functional.one_hot(given, 6), backend="aot_eager")(numbers.npu())
    assert torch.equal(whole.cpu(), functional.one_hot(numbers))


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_a_softmax_takes_halves_to_float_and_back(name, dtype):
    data, gradient = torch.randn(5, 10, dtype=dtype), torch.randn(5, 10)
    given, wanted = data.npu().requires_grad_(), data.float().requires_grad_()
    result, expected = getattr(torch, name)(given, 1, True), getattr(torch, name)(wanted, 1, False)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.cpu(), expected)
    found = torch.autograd.grad(result, given, gradient.npu())[0]
    torch.testing.assert_close(found.cpu(), torch.autograd.grad(expected, wanted, gradient)[0].to(dtype))
    back = torch._softmax_backward_data(gradient.npu(), expected.detach().npu(), 1, dtype)
    assert back.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_a_softmax_of_halves_is_rounded_once(dtype):
    data = (3 * torch.randn(4, 50, 200)).to(dtype)
    for dim in (1, 2):
        for function in (torch.softmax, torch.log_softmax):
            assert torch.equal(function(data.npu(), dim).cpu(), function(data.float(), dim).to(dtype))


def test_boxes_are_encoded_as_on_an_ascend_910b():
    boxes = torch.tensor([[1.0, 2, 3, 4], [3, 4, 5, 6]]).npu()
    truth = torch.tensor([[5.0, 6, 7, 8], [7, 8, 9, 6]]).npu()
    found = torch_npu.npu_bounding_box_encode(boxes, truth, 0, 0, 0, 0, 0.1, 0.1, 0.2, 0.2).cpu()
    expected = torch.tensor([[13.328125, 13.328125, 0, 0], [13.328125, 6.6640625, 0, float("nan")]])
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_quantized_weights_are_rounded_before_they_are_multiplied(dtype):
    data = torch.randn(4, 64, dtype=dtype)
    weight = torch.randint(-8, 8, (64, 6), dtype=torch.int8)
    scale, offset = torch.randn(6, dtype=dtype), torch.randn(6, dtype=dtype)
    found = torch_npu.npu_weight_quant_batchmatmul(data.npu(), weight.npu(), scale.npu(), offset.npu())
    if dtype == torch.half:
        whole = (weight.half() + offset) * scale
    else:
        whole = ((weight.float() + offset.float()) * scale.float()).bfloat16()
    torch.testing.assert_close(found.cpu(), (data.float() @ whole.float()).to(dtype))


def test_tokens_go_from_ranks_to_experts():
    sizes = torch.tensor([[1, 2], [2, 1]])  # of each rank, of each expert
    tokens = torch.arange(6.0)[:, None]
    moved, scales, places, counts = torch_npu.npu_moe_re_routing(
        tokens.npu(), sizes.npu(), per_token_scales=tokens[:, 0].npu()
    )
    assert moved.flatten().tolist() == scales.tolist() == places.tolist() == [0, 3, 4, 1, 2, 5]
    assert counts.tolist() == [3, 3]


@pytest.mark.parametrize("mode", ["Norm", "PA", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"])
def test_keys_are_normed_turned_and_written_to_caches(mode):
    batch, length, size = 2, 3, 4
    kv, gamma = torch.randn(batch, 1, length, 48), torch.rand(32)
    cosine, sine = torch.randn(2, batch, 1, length, 16)
    shape = (batch, 1, size) if mode == "Norm" else (batch, size, 1)
    caches = torch.full((*shape, 16), 9.0), torch.full((*shape, 32), 9.0)
    if "BLK" in mode:
        index = torch.tensor([size, 0])  # the second block, then the first
        places = [(1, 0), (1, 1), (1, 2), (0, 0), (0, 1), (0, 2)]
    elif mode == "Norm":
        index = torch.tensor([[1, 2, 3], [0, -5, 1]])
        places = [(0, 1), (0, 2), (0, 3), (1, 0), None, (1, 1)]
    else:
        index = torch.tensor([5, 0, 7, 3, -1, 2])
        places = [(1, 1), (0, 0), (1, 3), (0, 3), None, (0, 2)]
    found = torch_npu.npu_kv_rmsnorm_rope_cache(
        kv.npu(), gamma.npu(), cosine.npu(), sine.npu(), index.npu(), *(each.npu() for each in caches),
        cache_mode=mode, is_output_kv=True,
    )  # fmt: skip
    first, second = kv[..., 32::2], kv[..., 33::2]
    turned = torch.cat((first, second), -1) * cosine + torch.cat((-second, first), -1) * sine
    for cache, got, whole, rows in zip(
        caches, found, (turned, functional.rms_norm(kv[..., :32], (32,), gamma, 1e-5)), found[2:]
    ):
        torch.testing.assert_close(rows.cpu(), whole)
        cache = cache.view(batch, size, -1)
        for place, row in zip(places, whole.view(batch * length, -1)):
            if place is not None:
                cache[place] = row
        width = cache.shape[-1]
        if mode.endswith("NZ"):  # eight floats lie together
            got = got.view(batch, width // 8, size, 8).transpose(1, 2).reshape(batch, size, width)
        torch.testing.assert_close(got.cpu().view(batch, size, width), cache)


def test_a_softmax_in_place_and_the_derivative_in_its_place():
    logits, values, by = torch.randn(2, 5, 7), torch.randn(2, 7, 3), torch.randn(2, 5, 3)
    exact = logits.clone().requires_grad_()
    (expected,) = torch.autograd.grad(exact.softmax(-1) @ values, exact, by)
    data = logits.npu()
    torch_npu.npu_attn_softmax_(data)
    torch.testing.assert_close(data.cpu(), logits.softmax(-1))
    torch_npu.npu_attn_softmax_backward_(data, by.npu(), values.npu())
    torch.testing.assert_close(data.cpu(), expected)
