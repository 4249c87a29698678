from dataclasses import dataclass

import torch


@dataclass
class Settings:
    vocabulary: int = 32
    width: int = 16
    heads: int = 2
    layers: int = 1
    batch_size: int = 16
    epochs: int = 2
    lr: float = 0.1
    device: str = "cuda:0" if torch.cuda.is_available() else "cpu"
