import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from evaluate import Accuracy
from misc import MetricLogger, reduce_dict
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def init_distributed_mode(args):
    args.rank = int(os.environ["RANK"])
    args.gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(args.gpu)
    dist.init_process_group(backend="nccl", init_method="env://")
    dist.barrier()


def main(args):
    init_distributed_mode(args)
    device = torch.device(args.device)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(16, 5), torch.randint(0, 3, (16,)))
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    model = DDP(model, device_ids=[args.gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        logger = MetricLogger()
        accuracy = Accuracy(device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            output = model(x)
            loss = F.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            shared = reduce_dict({"loss": loss.detach()})
            logger.update(loss=loss, shared=shared["loss"])
            accuracy.update(output, y)
        logger.synchronize_between_processes()
        print(f"rank {args.rank} epoch {epoch} {logger} accuracy {accuracy.compute():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=1, type=int)
    parser.add_argument("--device", default="cuda", help="device to use for training / testing")
    main(parser.parse_args())
    dist.destroy_process_group()
