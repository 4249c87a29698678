"""Names at the margin, functions that use them, a step of several batches, and a checkpoint that is taken up."""

import argparse
import math
import os

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--passes", type=int, default=2, help="batches of a step")
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--sync-bn", action="store_true")
parser.add_argument("--use-adasum", action="store_true")
parser.add_argument("--predivide", type=float, default=1.0)
parser.add_argument("--base-lr", type=float, default=0.02)
parser.add_argument("--checkpoint", default="checkpoint-{epoch}.pt")


class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), norm(4), nn.ReLU())
        self.head = nn.Linear(4 * 16, 5)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Mean:
    def __init__(self, name):
        self.name = name
        self.total = torch.tensor(0.0)
        self.count = torch.tensor(0.0)

    def update(self, value):
        self.total += hvd.allreduce(value.detach().cpu(), name=self.name)
        self.count += 1

    @property
    def value(self):
        return self.total / self.count


def train(epoch):
    model.train()
    train_sampler.set_epoch(epoch)
    mean = Mean("train_loss")
    for index, (data, target) in enumerate(train_loader):
        warm_up(epoch, index)
        if args.cuda:
            data, target = data.cuda(), target.cuda()
        optimizer.zero_grad()
        for start in range(0, len(data), args.batch_size):
            part, labels = data[start : start + args.batch_size], target[start : start + args.batch_size]
            loss = F.cross_entropy(model(part), labels)
            mean.update(loss)
            loss.div_(math.ceil(len(data) / args.batch_size))
            loss.backward()
        optimizer.step()
    if verbose:
        print(f"epoch {epoch} train {mean.value:.6f}", flush=True)


def validate(epoch):
    model.eval()
    mean = Mean("val_loss")
    with torch.no_grad():
        for data, target in val_loader:
            if args.cuda:
                data, target = data.cuda(), target.cuda()
            mean.update(F.cross_entropy(model(data), target))
    if verbose:
        print(f"epoch {epoch} val {mean.value:.6f}", flush=True)


def warm_up(epoch, index):
    progress = epoch + (index + 1) / len(train_loader)
    factor = min(1.0, 1 / hvd.size() * (progress * (hvd.size() - 1) / args.epochs + 1))
    for group in optimizer.param_groups:
        group["lr"] = args.base_lr * hvd.size() * args.passes * factor


def save(epoch):
    if hvd.rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, args.checkpoint.format(epoch=epoch + 1))


if __name__ == "__main__":
    args = parser.parse_args()
    args.cuda = torch.cuda.is_available()
    hvd.init()
    torch.manual_seed(7 + hvd.rank())
    if args.cuda:
        torch.cuda.set_device(hvd.local_rank())

    first = 0
    for epoch in range(args.epochs, 0, -1):
        if hvd.rank() == 0 and os.path.exists(args.checkpoint.format(epoch=epoch)):
            first = epoch
            break
    first = hvd.broadcast(torch.tensor(first), root_rank=0, name="first").item()
    verbose = hvd.rank() == 0

    generator = torch.Generator().manual_seed(1)
    dataset = TensorDataset(
        torch.randn(48, 3, 6, 6, generator=generator), torch.randint(5, (48,), generator=generator)
    )
    train_sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
    train_loader = DataLoader(dataset, batch_size=args.batch_size * args.passes, sampler=train_sampler)
    val_sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=False)
    val_loader = DataLoader(dataset, batch_size=8, sampler=val_sampler)

    model = Net(hvd.SyncBatchNorm if args.sync_bn else nn.BatchNorm2d)
    lr_scaler = args.passes * hvd.size() if not args.use_adasum else 1
    if args.cuda:
        model.cuda()
        if args.use_adasum and hvd.nccl_built():
            lr_scaler = args.passes * hvd.local_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.base_lr * lr_scaler, momentum=0.9)
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=compression,
        backward_passes_per_step=args.passes,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
        gradient_predivide_factor=args.predivide,
    )
    if first > 0 and hvd.rank() == 0:
        state = torch.load(args.checkpoint.format(epoch=first))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(first, args.epochs):
        train(epoch)
        validate(epoch)
        save(epoch)
