"""What a name was given last counts; classes that are only asked for; tensors of the CPU."""

import torch
import torch.nn.functional as F
from torch import nn


class Pipeline(nn.Module):
    def latents(self, mask):
        for row in range(mask.size(0)):
            current = torch.zeros(3)
            current = self.vae.encode(current)[0]
            current = current.mode()  # expect: none
        image = torch.zeros(3)
        image = self.encoder(image).latent_dist
        image = image.mode()  # expect: none
        image = torch.stack([image])
        value = image.mode()  # expect: unsupported torch.Tensor.mode
        return current, value

    def forward(self, x):
        x = x + 1
        if x.ndim == 3:
            x = x[None]
        return x.mode()  # expect: unsupported torch.Tensor.mode


def reset(module):
    if isinstance(module, (nn.RNN, nn.RReLU)):  # expect: none
        module.reset_parameters()
    if issubclass(type(module), nn.MaxPool3d):  # expect: none
        return nn.MaxPool3d(2)  # expect: unsupported torch.nn.MaxPool3d
    return module


def frequencies(dim, x):
    on_cpu = torch.eye(dim, dtype=torch.float64, device="cpu")  # expect: none
    too = torch.eye(dim, dtype=torch.float64, device=torch.device("cpu"))  # expect: none
    there = torch.eye(dim, dtype=torch.float64, device=x.device)  # expect: partial torch.eye
    return on_cpu, too, there, F.pad(x, (1, 0), mode="constant", value=0)  # expect: none


def solved(a, b):
    values, vectors = torch.linalg.eigh(a)  # expect: fallback torch.linalg.eigh
    x = torch.linalg.solve(a, b)  # expect: fallback torch.linalg.solve
    filled = torch.masked_fill(a, a > 0, 1)  # expect: none
    return values, vectors, x, filled
