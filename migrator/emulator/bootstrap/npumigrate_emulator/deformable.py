"""Convolution of an image that is read at moved places: ``npu_deformable_conv2d``, and its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor


def _check(data: Tensor, offset: Tensor, stride: list[int]) -> None:
    """As op-plugin does, which wants sizes for all four dimensions."""
    if data.dim() < 4:
        raise RuntimeError(f"input has to be more than 4D, but got Tensor of dimension {data.dim()}")
    if offset.dim() < 4:
        raise RuntimeError(f"offset has to more than 4D, but got Tensor of dimension {offset.dim()}")
    if len(stride) < 4:
        raise RuntimeError(f"stride has to contain more than 4 elements, but got {len(stride)}")


def _moved(
    data: Tensor,
    offset: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    modulated: bool,
) -> Tensor:
    """Return what each place of the kernel reads: (N, C, rows · kernel's rows, columns · kernel's columns).

    The offset has, one after the other, what is added to columns and to rows, and factors where it is
    modulated; outside of the image there are zeros.
    """
    (count, channels, height, width), (rows, columns) = data.shape, offset.shape[2:]
    parts = offset.view(count, 2 + modulated, groups, *kernel_size, rows, columns).unbind(1)

    def places(size: int, kernel: int, dim: int, pad: int) -> Tensor:
        starts = torch.arange(size, device=data.device) * stride[dim] - pad
        return starts + (torch.arange(kernel, device=data.device) * dilation[dim])[:, None]

    x = parts[0] + places(columns, kernel_size[1], 3, padding[2])[:, None]
    y = parts[1] + places(rows, kernel_size[0], 2, padding[0])[:, None, :, None]
    top, left = y.detach().floor(), x.detach().floor()
    image = data.reshape(count, groups, channels // groups, height * width)
    shape = (count, groups, channels // groups, *kernel_size, rows, columns)

    def read(row: Tensor, column: Tensor) -> Tensor:
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        index = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
        index = index.flatten(2)[:, :, None].expand(-1, -1, shape[2], -1)
        return image.gather(3, index).view(shape) * inside[:, :, None]

    # Neighbours are subtracted before channels are summed, in derivatives as well: that rounds less.
    down, right = (y - top)[:, :, None], (x - left)[:, :, None]
    upper, lower = (
        first + (read(row, left + 1) - first) * right
        for row, first in ((top, read(top, left)), (top + 1, read(top + 1, left)))
    )
    total = upper + (lower - upper) * down
    if modulated:
        total = total * parts[2][:, :, None]
    spread = total.flatten(1, 2).permute(0, 1, 4, 2, 5, 3)
    return spread.reshape(count, channels, rows * kernel_size[0], columns * kernel_size[1])


def _convolution(
    data: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Optional[Tensor],
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: tuple[int, ...] = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> tuple[Tensor, Tensor]:
    """In float32 whatever comes in, as op-plugin does; the second result is what was read."""
    _check(data, offset, stride)
    sizes = (kernel_size, stride, padding, list(dilation))
    read = _moved(data.float(), offset.float(), *sizes, deformable_groups, modulated)
    by = None if bias is None else bias.float()
    return torch.nn.functional.conv2d(read, weight.float(), by, kernel_size, 0, 1, groups), read


def _gradients(
    data: Tensor,
    grad_output: Tensor,
    offset_out: Tensor,
    weight: Tensor,
    offset: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: tuple[int, ...] = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> tuple[Tensor, ...]:
    """Of the image, the weight, the offset and the bias."""
    _check(data, offset, stride)
    by_read, by_weight, by_bias = torch.ops.aten.convolution_backward(
        grad_output.float(), offset_out.float(), weight.float(), [weight.shape[0]], kernel_size, [0, 0],
        [1, 1], False, [0, 0], groups, [True, True, True],
    )  # fmt: skip
    given = [each.detach().float().requires_grad_() for each in (data, offset)]
    with torch.enable_grad():
        sizes = (kernel_size, stride, padding, list(dilation))
        read = _moved(given[0], given[1], *sizes, deformable_groups, modulated)
        by_data, by_offset = torch.autograd.grad(read, given, by_read)
    return by_data, by_weight, by_offset, by_bias


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_deformable_conv2d": _convolution,
    "npu_deformable_conv2dbk": _gradients,
}
