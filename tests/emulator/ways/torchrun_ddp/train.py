import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn

ddp = int(os.environ.get("RANK", -1)) != -1
parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--backend", default="nccl", choices=["nccl", "gloo"])
args = parser.parse_args()

if ddp:
    ddp_local_rank = int(os.environ["LOCAL_RANK"])
    device = f"cuda:{ddp_local_rank}"
    torch.cuda.set_device(device)
    dist.init_process_group(backend=args.backend)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    assert args.accumulate % world_size == 0
    args.accumulate //= world_size
else:
    rank, world_size, device = 0, 1, "cuda"
device_type = "cuda" if "cuda" in device else "cpu"
ctx = contextlib.nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type, enabled=False)
master_process = rank == 0
torch.manual_seed(1337)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


def get_batch(step):
    generator = torch.Generator().manual_seed(step * world_size + rank)
    x = torch.randn(2, 5, 8, generator=generator)
    if device_type == "cuda":
        return x.pin_memory().to(device, non_blocking=True) if args.backend == "gloo" else x.to(device)
    return x.to(device)


@torch.no_grad()
def estimate(model):
    model.eval()
    losses = torch.zeros(2, device=device)
    for k in range(2):
        with ctx:
            losses[k] = model(get_batch(100 + k)).pow(2).mean()
    gathered = [torch.zeros_like(losses) for _ in range(world_size)]
    dist.all_gather(gathered, losses)
    model.train()
    return torch.stack(gathered).mean().item()


def main():
    model = nn.Sequential(Block(8), nn.Linear(8, 3)).to(device)
    if ddp:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[ddp_local_rank])
    raw_model = model.module if ddp else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), fused=False)
    for step in range(3):
        for micro in range(args.accumulate):
            if ddp:
                model.require_backward_grad_sync = micro == args.accumulate - 1
            with ctx:
                loss = model(get_batch(step + micro)).pow(2).mean() / args.accumulate
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        shared = loss.detach().clone()
        dist.all_reduce(shared, op=dist.ReduceOp.SUM)
        if master_process:
            print(f"step {step} loss {shared.item() / world_size:.6f} norm {norm.item():.5f}", flush=True)
    found = estimate(model)
    print(f"rank {rank} estimate {found:.6f} weight {raw_model[1].weight.sum().item():.5f}", flush=True)


if __name__ == "__main__":
    main()
    if ddp:
        dist.destroy_process_group()
