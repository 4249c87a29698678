import torch


class Corpus:
    """A made-up text, as the numbers of its words."""

    def __init__(self, words=20, length=60):
        generator = torch.Generator().manual_seed(3)
        self.ntokens = words
        self.train = torch.randint(0, words, (length,), generator=generator)


def batchify(data, bsz, device):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous().to(device)
