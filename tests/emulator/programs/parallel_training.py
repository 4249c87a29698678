"""DDP, FSDP and SyncBatchNorm on every rank give what one CPU gives for the whole batch."""

import copy
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
torch.manual_seed(0)
start = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
data, labels = torch.randn(4, ranks * 4, 6), torch.randint(0, 3, (4, ranks * 4))


def train(model, device, mine):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for batch, target in zip(data[:, mine].to(device), labels[:, mine].to(device)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        if device != "cpu":
            dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(loss.item())
    return losses


expected = train(copy.deepcopy(start), "cpu", slice(None))
my_part, npu = slice(rank * 4, rank * 4 + 4), f"npu:{rank}"
ddp = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(start)).to(npu)
losses = train(DistributedDataParallel(ddp, device_ids=[rank]), npu, my_part)
torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected))

without_norm = nn.Sequential(start[0], nn.Tanh(), start[3])
expected = train(copy.deepcopy(without_norm), "cpu", slice(None))
fsdp = copy.deepcopy(without_norm).to(npu)
mesh = init_device_mesh("npu", (ranks,))
fully_shard(fsdp, mesh=mesh)
torch.testing.assert_close(torch.tensor(train(fsdp, npu, my_part)), torch.tensor(expected))
dist.destroy_process_group()
if rank == 0:
    print("DDP and FSDP train as one CPU does")
sys.stdout.flush()
