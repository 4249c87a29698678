from dataclasses import dataclass

import torch


@dataclass
class MixedPrecision:
    kind: str
    dtype: torch.dtype = torch.float16

    def __post_init__(self):
        self.scaler = torch.amp.GradScaler(self.kind, init_scale=256.0)

    def context(self):
        return torch.autocast(self.kind, dtype=self.dtype)

    def step(self, loss, optimizer):
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()
