import torch
from torch.utils.data import DataLoader, TensorDataset


def build_dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return TensorDataset(x, (x.sum(1) > 0).long())


def build_loader(n, seed, batch_size):
    dataset = build_dataset(n, seed)
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=0)
