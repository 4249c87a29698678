import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset


class Sequences(Dataset):
    def __init__(self, size, vocabulary):
        generator = torch.Generator().manual_seed(3)
        self.items = [
            torch.randint(1, vocabulary, (12,), generator=generator) for _ in range(size)
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def pad_batch(batch):
    tokens = pad_sequence(batch, batch_first=True, padding_value=0)
    return {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:], "mask": tokens[:, :-1] == 0}
