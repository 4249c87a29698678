import torch
from torch import nn

from anchors import anchors


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 8, stride=8)
        self.down = nn.Conv2d(8, 8, 2, stride=2)
        self.boxes = nn.Conv2d(8, 4, 1)
        self.anchors = anchors()

    def forward(self, images):
        first = self.stem(images).relu()
        second = self.down(first).relu()
        deltas = torch.cat([self.boxes(each).flatten(2).transpose(1, 2) for each in (first, second)], dim=1)
        grid = torch.cat(self.anchors)
        return grid[None] + deltas


def main():
    torch.manual_seed(0)
    model = Detector().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.rand(2, 3, 32, 32).cuda()
    wanted = torch.full((2, 20, 4), 12.0).cuda()
    for step in range(4):
        loss = (model(images) - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
