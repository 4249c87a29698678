import json
from pathlib import Path

import torch
from torch import nn


def samples(precision, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(32, 4, generator=generator).to(precision)
    y = (x * torch.tensor([1.0, -2.0, 0.5, 3.0])).sum(1, keepdim=True)
    return x.cuda(), y.to(precision).cuda()


def spread(x):
    centred = x - x.mean(0)
    return (centred.t() @ centred / len(x)).diagonal().sum()


def main():
    options = json.loads(Path(__file__).with_name("run.json").read_text())
    precision = getattr(torch, options["precision"])
    torch.manual_seed(options["seed"])
    x, y = samples(precision, options["seed"])
    print(f"spread {spread(x).item():.4f}")
    net = nn.Linear(4, 1).to(precision).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(5):
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
