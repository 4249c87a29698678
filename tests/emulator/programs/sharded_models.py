"""Tensor parallelism, DTensor and FSDP of the older kind, on two ranks: as one CPU computes it."""

import copy
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, StateDictType, fully_shard
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.npu.set_device(rank)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, data):
        return data + self.down(torch.relu(self.up(self.norm(data))))


start = nn.Sequential(Block(), Block(), nn.Linear(8, 3))
data, labels = torch.randn(5, 4, 8), torch.randint(0, 3, (5, 4))


def train(model, data, labels):
    optimizer = torch.optim.AdamW(
        model.parameters(), 0.01, foreach=False
    )  # foreach: no plain tensors beside DTensors
    losses = []
    for batch, target in zip(data, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


trained = copy.deepcopy(start)
expected = train(trained, data, labels)
npu = torch.device("npu", rank)

# One mesh of two dimensions: 1 × 2, of which the second is for tensor parallelism.
mesh = init_device_mesh("npu", (1, ranks), mesh_dim_names=("dp", "tp"))
tp = mesh["tp"]
model = copy.deepcopy(start).to(npu)
for block in model[:2]:
    parallelize_module(block, tp, {"up": ColwiseParallel(), "down": RowwiseParallel()})
assert model[0].up.weight.to_local().shape == (16 // ranks, 8)
torch.testing.assert_close(train(model, data.to(npu), labels.to(npu)), expected)
torch.testing.assert_close(model[0].up.weight.full_tensor().cpu(), trained[0].up.weight)

# The same with FSDP around it.
model = copy.deepcopy(start).to(npu)
for block in model[:2]:
    parallelize_module(block, tp, {"up": ColwiseParallel(), "down": RowwiseParallel()})
fully_shard(model, mesh=mesh["dp"])
torch.testing.assert_close(train(model, data.to(npu), labels.to(npu)), expected)
assert get_model_state_dict(model)["2.weight"].device.type == "npu"

matrix = torch.arange(24.0).view(6, 4)
rows = distribute_tensor(matrix.to(npu), tp, [Shard(0)])
product = rows @ distribute_tensor(matrix.T.contiguous().to(npu), tp, [Replicate()])
assert product.placements == (Shard(0),)
torch.testing.assert_close(product.full_tensor().cpu(), matrix @ matrix.T)
columns = rows.redistribute(placements=[Shard(1)])
torch.testing.assert_close(columns.to_local().cpu(), matrix.chunk(ranks, 1)[rank])

mine = slice(rank * 4 // ranks, (rank + 1) * 4 // ranks)
wrap = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
older = FullyShardedDataParallel(copy.deepcopy(start), device_id=npu, auto_wrap_policy=wrap)
losses = train(older, data[:, mine].to(npu), labels[:, mine].to(npu)).to(npu)
dist.all_reduce(losses, op=dist.ReduceOp.AVG)
torch.testing.assert_close(losses.cpu(), expected)
with FullyShardedDataParallel.state_dict_type(older, StateDictType.FULL_STATE_DICT):
    state = older.state_dict()
torch.testing.assert_close(state["2.weight"].cpu(), trained[2].weight.detach())
half = FullyShardedDataParallel(
    copy.deepcopy(start), device_id=npu, mixed_precision=MixedPrecision(torch.bfloat16, torch.float32)
)
losses = train(half, data[:, mine].to(npu).bfloat16(), labels[:, mine].to(npu)).to(npu)
dist.all_reduce(losses, op=dist.ReduceOp.AVG)
torch.testing.assert_close(losses.cpu(), expected, rtol=0.05, atol=0.05)

dist.destroy_process_group()
if rank == 0:
    print("sharded models train as one CPU does")
