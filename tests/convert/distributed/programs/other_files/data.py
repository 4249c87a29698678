import torch
from torch.utils.data import DataLoader, Dataset

batch_size = 16


class Noise(Dataset):
    def __init__(self):
        self.x = torch.randn(16, 8)
        self.y = torch.randint(0, 4, (16,))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def make_loaders():
    train_set = Noise()
    train = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    return train, DataLoader(train_set, batch_size=4)
