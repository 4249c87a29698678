"""Made-up data, as the real ones are not here."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size, features=8, classes=3, count=48):
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(count, features, generator=generator)
    labels = torch.randint(0, classes, (count,), generator=generator)
    half = count // 2
    train = TensorDataset(inputs[:half], labels[:half])
    test = TensorDataset(inputs[half:], labels[half:])
    return DataLoader(train, batch_size), DataLoader(test, batch_size)
