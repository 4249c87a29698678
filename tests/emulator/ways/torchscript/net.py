from typing import List

import torch
import torch.nn as nn


def positions(x: torch.Tensor) -> torch.Tensor:
    steps = torch.arange(x.shape[1], dtype=torch.float32)
    if x.is_cuda:
        steps = steps.cuda()
    return steps / x.shape[1]


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        bias = torch.zeros(1)
        if x.is_cuda:
            bias = bias.cuda()
        return torch.sigmoid(self.linear(x)) * self.scale + bias


class Encoder(nn.Module):
    def __init__(self, width: int = 6, depth: int = 2):
        super().__init__()
        self.gates = nn.ModuleList([Gate(width) for _ in range(depth)])

    def forward(self, x):
        seen: List[torch.Tensor] = []
        x = x + positions(x)[None, :]
        for gate in self.gates:
            x = x * gate(x)
            seen.append(x.mean())
        return x, torch.stack(seen)

    @torch.jit.export
    def placed(self, x):
        return x.is_cuda

    @torch.jit.ignore
    def place(self):
        return self.cuda()
