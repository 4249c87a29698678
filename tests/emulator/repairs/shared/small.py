import torch
from torch import nn


def images(count=8):
    generator = torch.Generator().manual_seed(5)
    return torch.rand(count, 3, 16, 16, generator=generator), torch.arange(count) % 4


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU()
        )
        self.head = nn.Linear(16, 4)

    def forward(self, inputs):
        return self.head(self.features(inputs).mean((2, 3)))
