import argparse

import torch
import torch.nn as nn
from ops.scan import scan


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.into = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(scan(self.into(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    args = parser.parse_args()
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(0)
    model = Memory(5)
    data = torch.randn(3, 7, 5)
    if args.cuda:
        model, data = model.cuda(), data.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(args.steps):
        loss = (model(data).squeeze(-1) - data.sum(-1)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
