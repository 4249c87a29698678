"""Sparse tensors: what op-plugin asks CANN for by name; all else is torch's and op-plugin's own."""

from __future__ import annotations

import torch
from torch import Tensor

from npumigrate_emulator import compute

_registered: list[torch.library.Library] = []


def register() -> None:
    """Register the operators for sparse tensors of an NPU."""
    aten = torch.library.Library("aten", "IMPL")
    compute.implement(aten, "_coalesce", _coalesce, "SparsePrivateUse1")
    _registered.append(aten)


def _coalesce(data: Tensor) -> Tensor:
    """Add what has the same indices, halves in float, as op-plugin does."""
    indices, values = data._indices(), data._values()
    if data._nnz() < 2:
        return data.clone()._coalesced_(True)
    flat = torch.zeros(indices.shape[1], dtype=indices.dtype, device=indices.device)
    for row, size in zip(indices, data.shape):
        flat = flat * size + row
    kept, places = flat.unique(return_inverse=True)
    one_each = torch.empty_like(kept).scatter_(0, places, torch.arange(len(flat), device=flat.device))
    whole = values.float() if values.dtype in (torch.half, torch.bfloat16) else values
    if whole.dtype == torch.bool:
        whole = whole.to(torch.uint8)
    added = torch.zeros(len(kept), *values.shape[1:], dtype=whole.dtype, device=values.device)
    added.index_add_(0, places, whole)
    result = torch.sparse_coo_tensor(
        indices[:, one_each], added.to(values.dtype), data.shape, check_invariants=False
    )
    return result._coalesced_(True)
