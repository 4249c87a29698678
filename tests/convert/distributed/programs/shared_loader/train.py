import argparse

import torch
from torch import nn

from data import build_loader


def evaluate(model, loader, device):
    model.eval()
    correct, total, loss = 0, 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            out = model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
            total += y.size(0)
    return loss / total, correct / total


def train(args):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    train_loader = build_loader(16, 0, args.batch_size)
    valid_loader = build_loader(10, 1, 5)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print("TRAIN %.6f" % (running / len(train_loader)))
        val_loss, acc = evaluate(model, valid_loader, device)
        if acc >= best:
            best = acc
            torch.save(model.state_dict(), "best.pt")
    print("FINAL", val_loss)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=3)
    torch.manual_seed(0)
    train(p.parse_args())
