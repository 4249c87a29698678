import argparse
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Adam
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


class Regression(Dataset):
    def __init__(self, n):
        x = np.linspace(-1, 1, n * 4, dtype=np.float32).reshape(n, 4)
        self.x, self.y = x, (x ** 2).sum(1, keepdims=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        return torch.from_numpy(self.x[idx]), torch.from_numpy(self.y[idx])


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, None, 0

    def __call__(self, value):
        if self.best is None or value < self.best:
            self.best, self.bad = value, 0
            return False
        self.bad += 1
        return self.bad > self.patience


def save_checkpoint(state, is_best, folder):
    path = os.path.join(folder, "last.pth")
    torch.save(state, path)
    if is_best:
        torch.save(state, os.path.join(folder, "best.pth"))


def run_epoch(model, loader, device, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total_loss, n = 0.0, 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            pred = model(x)
            loss = F.mse_loss(pred, y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total_loss += loss.item() * x.size(0)
            n += x.size(0)
    return total_loss / n


def main(args):
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    os.makedirs(args.folder, exist_ok=True)
    train_ds, val_ds = Regression(32), Regression(16)
    train_dl = DataLoader(train_ds, batch_size=args.batch_size, shuffle=False, num_workers=0)
    val_dl = DataLoader(val_ds, batch_size=args.batch_size)

    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 1))
    model = model.to(device)
    optimizer = Adam(model.parameters(), lr=1e-2)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    stopper = EarlyStopping(patience=3)
    start_epoch, best = 0, float("inf")
    last = os.path.join(args.folder, "last.pth")
    if args.resume and os.path.isfile(last):
        checkpoint = torch.load(last, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        start_epoch, best = checkpoint["epoch"] + 1, checkpoint["best"]
        print("resumed from epoch", checkpoint["epoch"])

    for epoch in range(start_epoch, args.epochs):
        train_loss = run_epoch(model, train_dl, device, optimizer)
        val_loss = run_epoch(model, val_dl, device)
        scheduler.step()
        print("TRAIN %.6f" % train_loss)
        print(f"{epoch:03d} train {train_loss:.5f} val {val_loss:.5f}")
        is_best = val_loss < best
        best = min(best, val_loss)
        save_checkpoint(
            {
                "epoch": epoch,
                "best": best,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
            is_best,
            args.folder,
        )
        if stopper(val_loss):
            print("early stop")
            break
    print("FINAL", val_loss)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", default="runs")
    parser.add_argument("--resume", action="store_true")
    main(parser.parse_args())
