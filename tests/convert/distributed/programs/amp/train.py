"""Image classification with mixed precision, gradient clipping and a warm restart schedule."""
import argparse
import logging
import time

import torch
import torch.nn as nn
import torch.optim as optim
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger(__name__)


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class Shapes(Dataset):
    def __init__(self, size=64, seed=1):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 1, 8, 8, generator=generator)
        self.labels = torch.randint(0, 4, (size,), generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class ConvNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(8 * 16, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item()


def train_epoch(model, loader, criterion, optimizer, scaler, epoch, args):
    model.train()
    losses, top1 = AverageMeter(), AverageMeter()
    for images, labels in loader:
        images = images.to(args.device, non_blocking=True)
        labels = labels.to(args.device, non_blocking=True)
        with autocast(enabled=args.amp):
            output = model(images)
            loss = criterion(output, labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        scaler.step(optimizer)
        scaler.update()
        losses.update(loss.item(), images.size(0))
        top1.update(accuracy(output, labels), images.size(0))
    return losses.avg, top1.avg


@torch.no_grad()
def validate(model, loader, criterion, args):
    model.eval()
    losses = AverageMeter()
    for images, labels in loader:
        images, labels = images.to(args.device), labels.to(args.device)
        losses.update(criterion(model(images), labels).item(), images.size(0))
    return losses.avg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("-b", "--batch_size", default=16, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--clip", default=1.0, type=float)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(42)
    torch.backends.cudnn.benchmark = True

    train_set, val_set = Shapes(), Shapes(32, seed=2)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=False, pin_memory=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)
    model = ConvNet(4).to(args.device)
    criterion = nn.CrossEntropyLoss().to(args.device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    scaler = GradScaler(enabled=args.amp)

    best = float("inf")
    for epoch in range(args.epochs):
        start = time.time()
        loss, acc = train_epoch(model, train_loader, criterion, optimizer, scaler, epoch, args)
        val_loss = validate(model, val_loader, criterion, args)
        scheduler.step()
        logger.info("epoch %d: %.4f %.4f, val %.4f (%.1f s)", epoch, loss, acc, val_loss, time.time() - start)
        print(f"TRAIN {loss:.6f} {acc:.4f}")
        if val_loss < best:
            best = val_loss
            torch.save(model.state_dict(), "best.pt")
    print("FINAL", val_loss)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
