import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, features=8, hidden=16, classes=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, inputs):
        return self.head(self.body(inputs))


def build(seed=0):
    torch.manual_seed(seed)
    return Classifier()
