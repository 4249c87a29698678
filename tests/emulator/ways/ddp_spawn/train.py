import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)


def cleanup():
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("", 0))
        return str(s.getsockname()[1])


def worker(rank, world_size, port, args):
    setup(rank, world_size, port)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)).to(rank)
    ddp_model = DDP(model, device_ids=[rank])
    loss_fn = nn.MSELoss().cuda(rank)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(16, 10), torch.randn(16, 5))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=True, seed=1)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    lines = []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = loss_fn(ddp_model(x.to(rank)), y.to(rank))
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.SUM)
            lines.append(f"epoch {epoch} step {step} rank {rank} mean {mean.item() / world_size:.6f}")
    if rank == 0:
        torch.save(ddp_model.state_dict(), "model.pt")
    dist.barrier()
    map_location = {"cuda:%d" % 0: "cuda:%d" % rank}
    ddp_model.load_state_dict(torch.load("model.pt", map_location=map_location, weights_only=True))
    print("\n".join(lines), flush=True)
    cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    n_gpus = torch.cuda.device_count()
    assert n_gpus >= 2, f"Requires at least 2 GPUs to run, but got {n_gpus}"
    mp.spawn(worker, args=(n_gpus, free_port(), args), nprocs=n_gpus, join=True)
