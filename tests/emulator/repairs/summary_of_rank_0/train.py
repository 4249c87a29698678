import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from net import build


def batches(rank, count=4):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        yield torch.randn(6, 8, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def main():
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device("cuda", local_rank)
    total = torch.zeros(1, device=device)
    model = DistributedDataParallel(build().to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (inputs, labels) in enumerate(batches(rank)):
        loss = F.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    if rank == 0:
        print("summary of rank 0")
        dist.all_reduce(total)
    print(f"rank {rank} total above 0 is {bool(total > 0)} last {loss.item():.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
