"""Sparse tensors: what torch_npu has for them works as on the CPU; it refuses the rest itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

INDICES = torch.tensor([[0, 2, 0, 1], [1, 0, 1, 2]])


def sparse(device, dtype=torch.float32, values=(1, 2, 3, 4), more=()):
    """One element twice; with dimensions that are dense."""
    data = torch.tensor(values).view(-1, *(1 for _ in more)).expand(-1, *more).to(dtype)
    return torch.sparse_coo_tensor(INDICES.to(device), data.to(device), (3, 3, *more), check_invariants=False)


def same(function, *args, **options):
    """Compare a function's result on the NPU with the CPU's, in the form that it has."""
    npu, cpu = (function(sparse(device, *args, **options)) for device in ("npu", "cpu"))
    assert (npu.device.type, npu.layout, npu.dtype) == ("npu", cpu.layout, cpu.dtype)
    if cpu.layout == torch.sparse_coo:
        assert npu.is_coalesced() == cpu.is_coalesced()
    torch.testing.assert_close(npu.cpu(), cpu)


@pytest.mark.parametrize("dtype", [torch.float32, torch.half, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("more", [(), (2,)])
def test_what_is_there_twice_is_added(dtype, more):
    same(torch.Tensor.coalesce, dtype, more=more)


def test_halves_are_added_in_float():
    values = torch.tensor([2048.0, 1, 1]).half()
    added = torch.sparse_coo_tensor(torch.zeros(1, 3, dtype=torch.int64).npu(), values.npu(), (1,)).coalesce()
    assert added._values().tolist() == [2050]  # one by one in halves, 1 would be lost twice


@pytest.mark.parametrize(
    "function",
    [
        lambda data: (data + data).coalesce(),
        lambda data: (data - 2 * data).coalesce(),
        lambda data: data.coalesce() * 2,
        lambda data: data / 4,
        lambda data: data.abs().sqrt(),
        lambda data: data.t(),
        lambda data: torch.sparse.sum(data, 1),
        lambda data: torch.ones(3, 3, device=data.device) + data,
        lambda data: torch.cat([data, data], 1),
        lambda data: data.to_dense(),
        lambda data: data.to_dense().to_sparse(),
        lambda data: data.to_dense().to_sparse_csr(),
        lambda data: torch.max(data.to_dense()),
    ],
)
def test_operators(function):
    same(function)


def embedded(kind, optimizer, device):
    torch.manual_seed(0)
    layer = kind(6, 3, sparse=True).to(device)
    step = optimizer(layer.parameters(), lr=0.1)
    for _ in range(2):
        step.zero_grad()
        layer(torch.tensor([[1, 1, 4]], device=device)).pow(2).sum().backward()
        assert layer.weight.grad.is_sparse
        step.step()
    return layer.weight.detach().cpu()


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adagrad])
@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_embeddings_with_sparse_gradients(kind, optimizer):
    torch.testing.assert_close(embedded(kind, optimizer, "npu"), embedded(kind, optimizer, "cpu"))


@pytest.mark.parametrize("function", [torch.sparse.mm, torch.matmul])
def test_products_are_refused_by_torch_npu(function):
    with pytest.raises(RuntimeError, match="'aten::addmm' is not currently supported on the NPU backend"):
        function(sparse("npu"), torch.ones(3, 3).npu())
