import argparse
import random
import time
import warnings

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Image classification")
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("-b", "--batch-size", default=4, type=int)
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--print-freq", default=1, type=int)
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--gpu", default=None, type=int, help="GPU id to use.")
best_acc1 = 0


def build():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 5),
    )


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
        cudnn.benchmark = False
    if args.gpu is not None:
        warnings.warn("You have chosen a specific GPU.")
    main_worker(args.gpu, args)


def main_worker(gpu, args):
    global best_acc1
    model = build()
    if not torch.cuda.is_available():
        print("using CPU, this will be slow")
    elif gpu is not None:
        torch.cuda.set_device(gpu)
        model = model.cuda(gpu)
    else:
        model = torch.nn.DataParallel(model).cuda()
    if torch.cuda.is_available():
        device = torch.device("cuda:{}".format(gpu)) if gpu is not None else torch.device("cuda")
    else:
        device = torch.device("cpu")
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    data = TensorDataset(torch.randn(12, 3, 16, 16), torch.randint(0, 5, (12,)))
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=0, pin_memory=False)
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, epoch, device, args)
        acc1 = validate(loader, model, criterion, gpu)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        print(f"epoch {epoch} Acc@1 {acc1:.3f} best {is_best}")


def train(loader, model, criterion, optimizer, epoch, device, args):
    losses = AverageMeter("Loss", ":.4f")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = time.time()
        if i % args.print_freq == 0:
            print(f"Epoch: [{epoch}][{i}] {losses}")


def validate(loader, model, criterion, gpu):
    model.eval()
    correct = 0.0
    with torch.no_grad():
        for images, target in loader:
            if gpu is not None and torch.cuda.is_available():
                images = images.cuda(gpu, non_blocking=True)
            if torch.cuda.is_available():
                target = target.cuda(gpu, non_blocking=True)
            output = model(images)
            correct += (output.argmax(1) == target).float().sum().item()
    return correct / len(loader.dataset) * 100


class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.val = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    def __str__(self):
        return f"{self.name} {self.val:.4f} ({self.sum / self.count:.4f})"


if __name__ == "__main__":
    main()
