import base


def prepare(seed):
    base.begin()
    import torch
    torch.manual_seed(seed)
