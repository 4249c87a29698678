import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.register_buffer("scale", torch.full((8,), 0.5))

    def forward(self, x):
        return (self.first(x) * self.scale).sum(1)
