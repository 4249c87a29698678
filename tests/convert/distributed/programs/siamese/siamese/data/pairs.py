import torch
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.a, self.b = torch.randn(n, 8, generator=g), torch.randn(n, 8, generator=g)
        self.same = torch.randint(0, 2, (n,), generator=g).float()

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return (self.a[i], self.b[i]), self.same[i]


class PairsData:
    def __init__(self, batch_size=8):
        self.batch_size = batch_size
        self.train_set = Pairs(32, 0)
        self.val_set = Pairs(16, 1)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=False)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size)
