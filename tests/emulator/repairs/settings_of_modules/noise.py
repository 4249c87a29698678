import torch
from settings import FAMILY, PLACE


def offset(width):
    return torch.linspace(-1, 1, width).to(PLACE)


def zeros(shape):
    return torch.zeros(shape, device=FAMILY)
