import argparse
import os
import time

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
import torchvision.transforms as T
from torch.cuda import nvtx  # expect: absent torch.cuda.nvtx
from torch.utils.data import DataLoader


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="train", choices=["train", "eval"])
    parser.add_argument("--solve", action="store_true")
    return parser.parse_args()


class Stem(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)  # expect: none
        self.norm = nn.BatchNorm2d(width)  # expect: none
        self.act = nn.ReLU(inplace=True)  # expect: none
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)  # expect: unsupported torch.nn.MaxPool2d

    def forward(self, x):
        return self.pool(self.act(self.norm(self.conv(x))))  # expect: none


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = Stem(64)
        self.squeeze = nn.AdaptiveAvgPool2d(1)  # expect: none
        self.peak = nn.AdaptiveMaxPool2d(1)  # expect: unsupported torch.nn.AdaptiveMaxPool2d
        self.drop = nn.Dropout(0.5)  # expect: none
        self.head = nn.Linear(64, classes)  # expect: none
        self.scale = nn.Parameter(torch.ones(1))  # expect: none
        self.register_buffer("seen", torch.zeros(classes))  # expect: none

    def forward(self, x):
        x = self.stem(x)
        x = self.squeeze(x) + self.peak(x)  # expect: none
        x = torch.flatten(x, 1)  # expect: none
        majority = x.mode(dim=1)  # expect: unsupported torch.Tensor.mode
        return self.head(self.drop(x)) * self.scale + majority.values.mean()


def accuracy(output: torch.Tensor, target: torch.Tensor, topk=(1,)):
    maxk = max(topk)
    _, pred = output.topk(maxk, 1, True, True)  # expect: none
    pred = pred.t()  # expect: none
    correct = pred.eq(target.view(1, -1).expand_as(pred))  # expect: none
    picked = target.unique_consecutive()  # expect: unsupported torch.Tensor.unique_consecutive
    return [correct[:k].reshape(-1).float().sum(0, keepdim=True) for k in topk], picked


def main():
    args = parse()
    if args.mode == "train" and args.solve:  # expect: none
        print(args.mode)  # expect: none
    torch.manual_seed(0)  # expect: none
    dist.init_process_group("nccl")  # expect: none
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # expect: none
    cudnn.benchmark = True  # expect: none
    model = Classifier(1000).cuda()  # expect: none
    model = nn.parallel.DistributedDataParallel(model)  # expect: none
    criterion = nn.CrossEntropyLoss()  # expect: none
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)  # expect: none
    fast = optim.SGD(model.parameters(), 0.1, foreach=True)  # expect: partial torch.optim.SGD
    scheduler = optim.lr_scheduler.StepLR(optimizer, 30)  # expect: none
    loader = DataLoader([], batch_size=8, num_workers=4, pin_memory=True)  # expect: none
    transform = T.Compose([T.ToTensor()])  # expect: none
    for epoch in range(90):
        nvtx.range_push("epoch")  # expect: none
        start = time.time()
        for images, target in loader:
            images = images.cuda(non_blocking=True)  # expect: none
            loss = criterion(model(images), target)
            optimizer.zero_grad()  # expect: none
            loss.backward()  # expect: none
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: unsupported torch.nn.utils.clip_grad_norm_
            optimizer.step()  # expect: none
            fast.step()  # expect: none
        scheduler.step()  # expect: none
        nvtx.range_pop()  # expect: none
        print(epoch, time.time() - start, loss.item(), transform)  # expect: none
        torch.save(model.state_dict(), "last.pth")  # expect: none
    print(torch.__version__.split("+")[0], torch.float32)  # expect: none
