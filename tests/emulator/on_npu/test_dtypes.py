"""Dtypes: what an NPU refuses, and what it takes though the CPU does not."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

ONE, OTHER = torch.randn(2, 3), torch.randn(3, 4)


def npu(data, dtype):
    return data.to(dtype).npu()


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.complex64])
@pytest.mark.parametrize("product", ["mm", "bmm", "addmm", "conv1d"])
def test_products_of_other_dtypes_are_refused_in_cann_s_words(product, dtype):
    def ones(*sizes):
        return torch.ones(*sizes, dtype=dtype).npu()

    arguments = {
        "mm": (ones(2, 3), ones(3, 4)),
        "bmm": (ones(1, 2, 3), ones(1, 3, 4)),
        "addmm": (ones(4), ones(2, 3), ones(3, 4)),
        "conv1d": (ones(1, 2, 5), ones(3, 2, 2)),
    }[product]
    if (product, dtype) == ("conv1d", torch.complex64):  # torch makes it of products of real numbers
        assert torch.conv1d(*arguments).dtype == dtype
        return
    name = {torch.float64: "DT_DOUBLE", torch.int64: "DT_INT64", torch.complex64: "DT_COMPLEX64"}[dtype]
    listed = r"should be in dtype support list \[DT_FLOAT16,DT_FLOAT,DT_BFLOAT16,\]"
    expected = rf"call aclnn\w+ failed[\s\S]*not implemented for {name}, {listed}"
    with pytest.raises(RuntimeError, match=expected):
        getattr(torch, product)(*arguments)


def test_norms_of_doubles_are_refused():
    data = torch.randn(2, 4, dtype=torch.float64).npu()
    for norm in (lambda: functional.layer_norm(data, (4,)), lambda: functional.group_norm(data, 2)):
        with pytest.raises(RuntimeError, match="DT_DOUBLE"):
            norm()


@pytest.mark.parametrize("first", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("second", [torch.float16, torch.bfloat16, torch.float32])
def test_a_product_of_two_dtypes_is_of_the_first(first, second):
    """aclnnMm lets them meet in the wider one; op-plugin makes the result with ``self.options()``."""
    result = torch.mm(npu(ONE, first), npu(OTHER, second))
    assert result.dtype == first
    whole = ONE.to(first).float() @ OTHER.to(second).float()
    torch.testing.assert_close(result.cpu(), whole.to(first))
    biased = torch.addmm(npu(torch.ones(4), second), npu(ONE, first), npu(OTHER, first))
    assert biased.dtype == second


def test_batched_products_want_one_dtype():
    with pytest.raises(RuntimeError, match=r"mat2's dtype \[DT_FLOAT\] and self's dtype \[DT_FLOAT16\]"):
        torch.bmm(npu(ONE[None], torch.float16), npu(OTHER[None], torch.float32))


def test_a_result_is_written_to_a_half():
    out = torch.empty(2, 4).half().npu()
    assert torch.mm(npu(ONE, torch.half), npu(OTHER, torch.half), out=out) is out
    expected = (ONE.half().float() @ OTHER.half().float()).half()
    assert torch.equal(out.cpu(), expected)
    with pytest.raises(RuntimeError, match="expected dtype"):
        torch.mm(npu(ONE, torch.half), npu(OTHER, torch.half), out=torch.empty(2, 4).bfloat16().npu())


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("sizes", [(0,), (1,), (5, 5)])
def test_results_take_the_size_that_they_need(sizes):
    out = torch.empty(*sizes).npu()
    where = out.data_ptr()
    torch.add(ONE.npu(), 1, out=out)
    assert torch.equal(out.cpu(), ONE + 1)
    assert out.is_contiguous()
    if out.untyped_storage().nbytes() > ONE.nbytes:
        assert out.data_ptr() == where
    grown = torch.empty(1).half().npu()
    torch.mm(npu(ONE, torch.half), npu(OTHER, torch.half), out=grown)
    assert grown.shape == (2, 4)


def test_class_numbers_may_be_of_32_bits():
    classes = torch.tensor([0, 2])
    expected = functional.cross_entropy(ONE, classes)
    assert torch.equal(functional.cross_entropy(ONE.npu(), classes.int().npu()).cpu(), expected)
    data = ONE.npu().requires_grad_()
    functional.nll_loss(data, classes.int().npu()).backward()
    assert data.grad.count_nonzero() == 2


def test_kernels_that_the_cpu_has_for_floats_alone():
    half = npu(ONE, torch.half)
    whole = ONE.half().float()
    torch.testing.assert_close(torch.cdist(half, half).cpu(), torch.cdist(whole, whole).half())
    image = npu(torch.randn(1, 1, 4, 4), torch.half)
    larger = functional.interpolate(image, scale_factor=2, mode="bicubic", antialias=True)
    assert (larger.dtype, larger.shape) == (torch.half, (1, 1, 8, 8))
    counts = torch.histc(torch.tensor([1, 2, 2]).npu(), 2, 1, 2)
    assert (counts.dtype, counts.tolist()) == (torch.int64, [1, 2])


def test_halves_are_rounded_once():
    many = torch.full((64,), 1.01).half()
    assert many.npu().prod().cpu() == many.double().prod().half()


def test_results_are_contiguous_as_op_plugin_makes_them():
    """torch_npu makes no tensor in another memory format, and refuses to be asked for one."""
    permuted = torch.randn(2, 4, 4, 3).npu().permute(0, 3, 1, 2)
    assert (permuted + 1).is_contiguous()
    larger = functional.conv_transpose2d(permuted, torch.randn(3, 2, 2, 2).npu())
    assert larger.is_contiguous()
    assert functional.gelu(larger).shape == larger.shape
    with pytest.raises(RuntimeError, match="only supported contiguous memory format"):
        larger.contiguous(memory_format=torch.channels_last)
    assert permuted.contiguous().is_contiguous()


def test_a_layer_norm_of_halves_sums_in_float():
    """As an NPU does; the CPU keeps means and deviations in halves."""
    data = torch.rand(469, 7) * 99 + 1
    layer = torch.nn.LayerNorm(7)
    layer(data.half().float()).sum(0).matmul(torch.arange(7.0)).backward()
    on_npu = torch.nn.LayerNorm(7).npu()
    on_npu(data.half().npu()).float().sum(0).matmul(torch.arange(7.0).npu()).backward()
    torch.testing.assert_close(on_npu.weight.grad.cpu(), layer.weight.grad, atol=1e-3, rtol=1e-4)
    given = (data.half().npu(), [7], None, None, 1e-5)
    assert torch.ops.aten.native_layer_norm(*given)[1].dtype == torch.float32


@pytest.mark.parametrize("weight", [1, torch.ones(2, 1)], ids=["number", "tensor"])
def test_lerp_in_place_does_not_widen_its_tensor(weight):
    weight = weight.npu() if isinstance(weight, torch.Tensor) else weight
    wide, narrow = torch.ones(2, 6).npu(), torch.zeros(2, 1).npu()
    assert torch.equal(wide.lerp_(narrow, weight).cpu(), torch.zeros(2, 6))
    with pytest.raises(RuntimeError, match=r"(?s)call aclnnInplaceLerps? failed.*CheckShape failed"):
        narrow.lerp_(wide, weight)


NINE = [2] * 9
BEYOND_EIGHT = {
    "contiguous": lambda data: data.transpose(0, -1).contiguous(),
    "reshape": lambda data: data.transpose(0, -1).reshape(-1),
    "clone": lambda data: data.clone(),
    "to": lambda data: data.half(),
    "from strides": lambda data: data.transpose(0, -1).cpu(),
    "add": lambda data: data + 1,
    "cat": lambda data: torch.cat([data, data]),
    "sin": lambda data: data.sin(),
}


@pytest.mark.parametrize("name", BEYOND_EIGHT)
def test_eight_dimensions_are_the_most(name):
    """As NPUs say of a copy, and CANN's documents of others; views, and what lies in one piece, are free."""
    at_limit, beyond = torch.ones(NINE[:8]).npu(), torch.ones(NINE).npu()
    BEYOND_EIGHT[name](at_limit)
    with pytest.raises(RuntimeError, match=r"call aclnn\w+ failed[\s\S]*cannot be larger than 8 dimensions"):
        BEYOND_EIGHT[name](beyond)
    assert beyond.view(-1).cpu().shape == (512,)
    assert beyond.cpu().shape == torch.Size(NINE)


@pytest.mark.parametrize("dtype", [torch.half, torch.float32])
def test_a_product_of_halves_has_the_dtype_that_is_asked_for(dtype):
    data = torch.tensor([2, 3, 6, 9, 8], dtype=torch.half).npu()
    for found in (torch.prod(data, dtype=dtype), data.prod(dtype=dtype), data.prod(0, dtype=dtype)):
        assert found.dtype == dtype
        assert found.item() == 2592


def test_the_derivative_of_a_grid_is_rounded_once():
    data, grid = torch.rand(4, 64, 8, 8) * 100, torch.rand(4, 1, 1, 2) * 2 - 1
    given = [each.half().npu().requires_grad_() for each in (data, grid)]
    exact = [each.half().float().requires_grad_() for each in (data, grid)]
    for inputs in (given, exact):
        torch.grid_sampler_2d(*inputs, 0, 0, True).sum().backward()
    for one, other in zip(given, exact):
        torch.testing.assert_close(one.grad.cpu(), other.grad.half())


@pytest.mark.parametrize(
    ("name", "sizes", "rest"),
    [
        ("slow_conv_transpose2d", [(1, 12, 20, 20), (12, 12, 3, 3)], ([3, 3],)),
        ("upsample_bicubic2d", [(1, 2, 9, 9)], ([25, 31], False)),
        ("_adaptive_avg_pool3d", [(1, 2, 9, 9, 9)], ([2, 2, 2],)),
        ("_adaptive_avg_pool2d", [(1, 2, 5, 5)], ([17, 17],)),
        ("avg_pool2d", [(1, 2, 30, 30)], ([9, 9], [1, 1])),
        ("unfold", [(60,)], (0, 30, 1)),
    ],
)
def test_sums_of_halves_and_their_derivatives_are_rounded_once(name, sizes, rest):
    torch.manual_seed(0)
    given = [(torch.randn(size) * 10).half() for size in sizes]
    on_npu = [each.npu().requires_grad_() for each in given]
    exact = [each.float().requires_grad_() for each in given]
    operator = getattr(torch.ops.aten, name)
    results = []
    for inputs in (on_npu, exact):
        found = operator(*inputs, *rest)
        by = torch.linspace(0, 1, found.numel()).view(found.shape).half().to(found)
        results.append((found, *torch.autograd.grad(found, inputs, by)))
    for one, other in zip(*results):
        torch.testing.assert_close(one.cpu(), other.half(), rtol=1e-3, atol=1e-3)
