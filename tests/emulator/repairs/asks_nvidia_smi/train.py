import argparse

import torch

from data import loaders
from engine import evaluate, train_one_epoch
from hardware import has_gpu
from net import build


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--no-gpu", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if has_gpu() else "cpu")
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    train, test = loaders(args.batch_size)
    for epoch in range(args.epochs):
        train_one_epoch(model, train, optimizer, device, epoch)
    evaluate(model, test, device)


if __name__ == "__main__":
    main()
