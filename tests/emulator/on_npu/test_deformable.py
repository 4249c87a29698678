"""Convolution at moved places."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch.nn import functional

SIZES = {"kernel_size": [3, 3], "stride": [1, 1, 2, 1], "padding": [1, 1, 1, 1]}


def given(deformable_groups: int = 2, parts: int = 3) -> list[torch.Tensor]:
    torch.manual_seed(0)
    data, weight = torch.randn(2, 4, 6, 5), torch.randn(6, 4, 3, 3)
    return [data, weight, torch.rand(2, parts * deformable_groups * 9, 3, 5), torch.randn(6)]


def test_what_is_not_moved_is_a_convolution():
    data, weight, offset, bias = given()
    offset[:, :36], offset[:, 36:] = 0, 1
    found, read = torch_npu.npu_deformable_conv2d(
        data.npu(), weight.npu(), offset.npu(), bias.npu(), **SIZES, deformable_groups=2
    )
    torch.testing.assert_close(found.cpu(), functional.conv2d(data, weight, bias, (2, 1), 1))
    assert read.shape == (2, 4, 9, 15)


def test_columns_are_moved_before_rows_and_then_weighed():
    """One kernel of one place: to the right by 1, down by 0.5, half of it."""
    data = torch.arange(12.0).view(1, 1, 3, 4)
    offset = torch.tensor([1, 0.5, 0.5]).view(1, 3, 1, 1).expand(1, 3, 3, 4)
    sizes = {"kernel_size": [1, 1], "stride": [1, 1, 1, 1], "padding": [0, 0, 0, 0]}
    _, read = torch_npu.npu_deformable_conv2d(
        data.npu(), torch.ones(1, 1, 1, 1).npu(), offset.npu(), None, **sizes
    )
    assert read[0, 0].tolist() == [[1.5, 2, 2.5, 0], [3.5, 4, 4.5, 0], [2.25, 2.5, 2.75, 0]]
    unweighed = torch_npu.npu_deformable_conv2d(
        data.npu(), torch.ones(1, 1, 1, 1).npu(), offset[:, :2].npu(), None, **sizes, modulated=False
    )[1]
    torch.testing.assert_close(unweighed, read * 2)


def test_its_derivative_is_the_operator_of_op_plugin():
    leaves = [each.npu().requires_grad_() for each in given()]
    found, read = torch_npu.npu_deformable_conv2d(*leaves, **SIZES, deformable_groups=2)
    by = torch.randn_like(found)
    expected = torch.autograd.grad(found, leaves, by)
    data, weight, offset, _ = leaves
    gradients = torch_npu.npu_deformable_conv2dbk(
        data, by, read, weight, offset, **SIZES, deformable_groups=2
    )
    for one, other in zip(gradients, expected):
        torch.testing.assert_close(one, other)
    slope = 1e-2
    moved = torch_npu.npu_deformable_conv2d(data, weight, offset + slope, None, **SIZES, deformable_groups=2)
    back = torch_npu.npu_deformable_conv2d(data, weight, offset - slope, None, **SIZES, deformable_groups=2)
    measured = ((moved[0] - back[0]) * by).sum() / (2 * slope)
    torch.testing.assert_close(gradients[2].sum(), measured, rtol=0.1, atol=1.0)


def test_sizes_of_all_dimensions_are_wanted():
    data, weight, offset, _ = (each.npu() for each in given())
    with pytest.raises(RuntimeError, match="stride has to contain more than 4 elements, but got 2"):
        torch_npu.npu_deformable_conv2d(data, weight, offset, None, [3, 3], [1, 1], [1, 1, 1, 1])


def test_a_convolution_reads_one_number_of_the_padding_for_each_of_the_stride():
    data, weight = torch.randn(1, 2, 6, 5).npu(), torch.randn(3, 2, 3, 3).npu()
    sizes = ([1, 1], [1, 0, 7, 7], [1, 1], 1)
    found = torch_npu.npu_conv2d(data, weight, None, *sizes)
    torch.testing.assert_close(found, functional.conv2d(data, weight, None, 1, (1, 0)))
    by_data = torch_npu.npu_conv2d_backward(data, found, weight, *sizes, [True, False, False])[0]
    assert by_data.shape == data.shape
