#!/usr/bin/env python
"""Trains on one card."""

import argparse
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
batch_size = 8


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume", default="")
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def evaluate(model, loader, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.cross_entropy(model(x.to(device)), y.to(device), reduction="sum").item()
    return total / len(loader.dataset)


def main():
    args = parse()
    torch.manual_seed(0)
    device = torch.device(f"cuda:{args.gpu}") if torch.cuda.is_available() else torch.device("cpu")
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))
    train_loader = DataLoader(
        data,
        batch_size,
        shuffle=False,  # in the order of time
    )
    val_loader = DataLoader(data, batch_size=batch_size)
    model = Net()
    model = model.to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    if args.resume:
        state = torch.load(args.resume, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    for epoch in range(args.epochs):
        model.train()
        for step, (x, y) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        norm = model.head.weight.norm().item()
        print(f"epoch {epoch}: {norm:.4f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
    print("FINAL", evaluate(model, val_loader, device))
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
