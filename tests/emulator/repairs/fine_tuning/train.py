from pathlib import Path

import torch
from checkpoints import restore
from data import loaders
from engine import evaluate, train_one_epoch
from torch import nn


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    begun = restore(model, Path(__file__).parent)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train, test = loaders(8)
    for epoch in range(begun, begun + 2):
        train_one_epoch(model, train, optimizer, device, epoch)
    evaluate(model, test, device)


if __name__ == "__main__":
    main()
