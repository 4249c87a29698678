import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from net import build
from ranks import start


def batches(rank, count=4):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        yield torch.randn(6, 8, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def main():
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    start("nccl")
    dist.barrier()
    device = torch.device("cuda", local_rank)
    model = DistributedDataParallel(build().to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (inputs, labels) in enumerate(batches(rank)):
        loss = F.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"rank {rank} step {step} loss {loss.item():.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
