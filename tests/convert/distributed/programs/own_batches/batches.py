import random

import torch


class BatchIterator:
    def __init__(self, examples, batch_size, shuffle=False):
        self.examples, self.batch_size, self.shuffle = list(examples), batch_size, shuffle

    def __len__(self):
        return (len(self.examples) + self.batch_size - 1) // self.batch_size

    def __iter__(self):
        if self.shuffle:
            random.shuffle(self.examples)
        for i in range(0, len(self.examples), self.batch_size):
            part = self.examples[i : i + self.batch_size]
            yield torch.stack([x for x, _ in part]), torch.tensor([y for _, y in part])
