import argparse

import torch
import torch.nn as nn
from precision import get_autocast, scaler_of, scope_of

parser = argparse.ArgumentParser()
parser.add_argument("--amp", default="bfloat16", choices=["none", "bfloat16", "float16"])
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()


def main():
    torch.manual_seed(0)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda:0" if use_cuda else "cpu")
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    scope, scaler = scope_of(args.amp), scaler_of(args.amp)
    for step in range(args.steps):
        x = torch.randn(4, 8).to(device)
        with scope():
            output = net(x)
            loss = output.float().pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(f"step {step} loss {loss.item():.2f} norm {norm.item():.2f} dtype {output.dtype}")
    autocast = get_autocast(args.amp != "none")
    with autocast("cuda"):
        exact = net[0](torch.ones(1, 8, device=device))
    print(f"reduced {exact.dtype in (torch.float16, torch.bfloat16)} {exact.float().abs().mean().item():.2f}")


main()
