import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--channels-last", action="store_true", default=False)
parser.add_argument("--steps", type=int, default=3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.conv2(self.conv1(x))))
        x = x.permute(0, 2, 3, 1).contiguous()
        return self.head(x.mean((1, 2)))


class Prefetcher:
    """Moves the next batch while this one is computed."""

    def __init__(self, batches, memory_format):
        self.batches, self.memory_format = iter(batches), memory_format
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.batches)
        except StopIteration:
            self.next_input = None
            return
        with torch.cuda.stream(self.stream):
            self.next_input = self.next_input.cuda(non_blocking=True).to(memory_format=self.memory_format)
            self.next_target = self.next_target.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        given, target = self.next_input, self.next_target
        if given is not None:
            given.record_stream(torch.cuda.current_stream())
            self.preload()
        return given, target


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.channels_last:
        memory_format = torch.channels_last
    else:
        memory_format = torch.contiguous_format
    model = Net().cuda().to(memory_format=memory_format)
    ema = Net().to("cuda", memory_format=torch.channels_last)
    ema.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(2, 3, 8, 8), torch.randint(0, 4, (2,))) for _ in range(args.steps)]
    prefetcher = Prefetcher(batches, memory_format)
    images, target = prefetcher.next()
    step = 0
    while images is not None:
        loss = F.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for kept, new in zip(ema.parameters(), model.parameters()):
            kept.data.mul_(0.9).add_(new.data, alpha=0.1)
        print(f"step {step} loss {loss.item():.6f}")
        images, target = prefetcher.next()
        step += 1
    total = sum(parameter.abs().sum().item() for parameter in ema.parameters())
    print(f"ema {total:.5f}")


if __name__ == "__main__":
    main()
