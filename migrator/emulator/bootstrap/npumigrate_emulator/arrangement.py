"""Parts of tensors and their order: slices, bits, ranges, repetitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional

from npumigrate_emulator import compute
from npumigrate_emulator.routing import refuse

_registered: list[torch.library.Library] = []


def register() -> None:
    """Register what torch makes of other operators, and torch_npu does not, or of other ones."""
    aten = torch.library.Library("aten", "IMPL")
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        compute.implement(aten, "one_hot", _one_hot, key)
        compute.implement(aten, "_weight_norm", _weight_norm, key)
    _registered.append(aten)


def _one_hot(data: Tensor, num_classes: int = -1) -> Tensor:
    """As op-plugin: of the dtype of the numbers, whatever it is, and zeros where a number is no class."""
    if num_classes < -1:
        raise RuntimeError("NPU error, not yet support negative num_classes, when num_classes less than -1")
    if data.numel() == 0 and num_classes <= 0:
        raise RuntimeError("NPU error, can not infer total number of classes from empty tensor.")
    traced = isinstance(data, FakeTensor)
    if traced and num_classes == -1:
        raise RuntimeError("FakeTensorMode does not support num_classes == -1.")
    depth = num_classes if num_classes >= 0 else max(int(data.max()) + 1, 1)
    classes = torch.arange(depth, dtype=torch.long if traced else data.dtype, device=data.device)
    return (data[..., None] == classes).to(classes.dtype)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """As op-plugin: torch's own has a kernel for it on the CPU."""
    v, g = v.contiguous(), g.contiguous()
    return v * g.div(torch.norm_except_dim(v, 2, dim))


def pack_bits(bits: Tensor, first_is_high: bool = False, rest: int = 1) -> Tensor:
    """Eight bits in a byte; what is left of the last byte is 1 or 0."""
    flat = functional.pad(bits.flatten().to(torch.uint8), (0, -bits.numel() % 8), value=rest)
    places = (
        torch.arange(8, device=bits.device).flip(0) if first_is_high else torch.arange(8, device=bits.device)
    )
    return (flat.view(-1, 8).int() << places).sum(1).to(torch.uint8)


def unpack_bits(data: Tensor, count: int, first_is_high: bool = False) -> Tensor:
    """The first bits of the bytes, as booleans."""
    places = (
        torch.arange(8, device=data.device).flip(0) if first_is_high else torch.arange(8, device=data.device)
    )
    return ((data[:, None].int() >> places) & 1).flatten()[:count].bool()


def _pack_signs(data: Tensor, size: int) -> Tensor:
    """A bit for each number, 1 where it is not negative."""
    return pack_bits(data >= 0, rest=0).view(size, -1)


def _unpack_signs(data: Tensor, size: int, dtype: Any) -> Tensor:
    return (unpack_bits(data, 8 * data.numel()).to(dtype) * 2 - 1).view(size, -1)


def _indexing(
    data: Tensor,
    begin: list[int],
    end: list[int],
    strides: list[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """A slice in each dimension, as Python has them; a bit of a mask leaves an end open."""
    masks = {"ellipsis_mask": ellipsis_mask, "new_axis_mask": new_axis_mask}
    refuse("npu_indexing", masks, shrink_axis_mask=shrink_axis_mask)
    slices = tuple(
        slice(None if begin_mask >> dim & 1 else first, None if end_mask >> dim & 1 else last, step)
        for dim, (first, last, step) in enumerate(zip(begin, end, strides))
    )
    return data[slices].contiguous()


def _fill_ranges(data: Tensor, start: Tensor, end: Tensor, value: Tensor, axis: int = -1) -> Tensor:
    """Fill along an axis what is between starts and ends: rows of them, each for its index of dimension 0."""
    places = torch.arange(data.shape[axis], device=data.device)
    result = data.clone()
    rows = axis % data.dim() != 0
    for each, (first, last) in enumerate(zip(start, end)):
        inside = (places >= first[:, None]) & (places < last[:, None])
        mask = inside if rows and data.dim() > 1 else inside.any(0)
        shape = [1] * data.dim()
        shape[axis] = -1
        if mask.dim() == 2:
            shape[0] = mask.shape[0]
        result = torch.where(mask.view(shape), value[each].to(data.dtype), result)
    return result


def _stride_add(data: Tensor, other: Tensor, offset1: int, offset2: int, c1_len: int) -> Tensor:
    """Add blocks of 16 channels, from an offset on in each tensor."""

    def part(tensor: Tensor, offset: int) -> Tensor:
        channels = tensor[:, 16 * offset : 16 * (offset + c1_len)]
        missing = 16 * c1_len - channels.shape[1]
        return functional.pad(channels, [0, 0] * (tensor.dim() - 2) + [0, missing])

    return part(data, int(offset1)) + part(other, int(offset2))


def _normalize(data: Tensor, seq_len: Tensor, normalize_type: int = 0) -> Tensor:
    """By mean and deviation of what is before the sequences' ends: of each feature, or with 1 of all."""
    dims = (2,) if normalize_type == 0 else (1, 2)
    inside = (torch.arange(data.shape[2], device=data.device) < seq_len[:, None])[:, None].expand_as(data)
    count = inside.sum(dims, keepdim=True)
    mean = (data * inside).sum(dims, keepdim=True) / count
    deviation = (((data - mean) * inside).pow(2).sum(dims, keepdim=True) / (count - 1)).sqrt()
    return (data - mean) / (deviation + 1e-5)


def _sum_of_repeated(grad: Tensor, data: Tensor, repeats: Any, dim: Optional[int] = None) -> Tensor:
    source = torch.zeros_like(data, requires_grad=True)
    with torch.enable_grad():
        out = torch.repeat_interleave(source, repeats, dim)
        return torch.autograd.grad(out, source, grad)[0]


def _renorm_backward(grad: Tensor, data: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    source = data.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(torch.renorm(source, p, dim, maxnorm), source, grad)[0]


def _scatter_nd_update_in_place(data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return data.index_put_(tuple(indices.long().unbind(-1)), updates)


def _scatter_nd_update(data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return _scatter_nd_update_in_place(data.clone(), indices, updates)


def scatter_update_in_place(data: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Write the updates of each batch behind its own index along an axis."""
    if indices.dim() == 2:
        for update, (batch, start) in zip(updates, indices.tolist()):
            data[batch].narrow(axis + (0 if axis < 0 else -1), start, update.shape[axis]).copy_(update)
        return data
    for each, update, start in zip(data, updates, indices.tolist()):
        each.narrow(
            axis if axis < 0 else axis - 1, start, update.shape[axis if axis < 0 else axis - 1]
        ).copy_(update)
    return data


def _scatter_update(data: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    return scatter_update_in_place(data.clone(), indices, updates, axis)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_gather_sparse_index": lambda data, index: functional.embedding(index, data),
    "npu_indexing": _indexing,
    "npu_masked_fill_range": _fill_ranges,
    "npu_normalize_batch": _normalize,
    "npu_renorm_backward": _renorm_backward,
    "npu_sign_bits_pack": _pack_signs,
    "npu_sign_bits_unpack": _unpack_signs,
    "npu_sort_v2": lambda data, dim=-1, descending=False: data.sort(dim, descending)[0],
    "npu_stride_add": _stride_add,
    "npu_scatter_nd_update": _scatter_nd_update,
    "npu_scatter_nd_update_": _scatter_nd_update_in_place,
    "repeat_interleave_backward_int": _sum_of_repeated,
    "repeat_interleave_backward_tensor": _sum_of_repeated,
    "scatter_update": _scatter_update,
    "scatter_update_": scatter_update_in_place,
}
