import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from net import build
from confusion import ConfusionMatrix


def batches(rank, count=4):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        yield torch.randn(6, 8, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def main():
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device("cuda", local_rank)
    matrix = ConfusionMatrix(3)
    model = DistributedDataParallel(build().to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (inputs, labels) in enumerate(batches(rank)):
        loss = F.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        matrix.add(model(inputs.to(device)).argmax(1), labels)
    matrix.synchronize()
    if rank == 0:
        print(f"accuracy {matrix.accuracy():.4f} of {matrix.total():.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
