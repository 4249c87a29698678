import torch

import settings


def weights():
    return torch.tensor([1.0, 2.0, 0.5]).to(settings.PLACE)


def smoothing(labels):
    return torch.full((len(labels), 3), 0.1).to(settings.PLACE)
