import torch
from misc import reduce_dict


class Accuracy:
    """Sums in double precision: there are many pixels."""

    def __init__(self, device):
        self.correct = torch.zeros((), dtype=torch.double, device=device)
        self.total = torch.zeros((), dtype=torch.double, device=device)

    def update(self, output, target):
        self.correct += (output.argmax(1) == target).sum()
        self.total += target.numel()

    def compute(self):
        both = reduce_dict({"correct": self.correct, "total": self.total}, average=False)
        return (both["correct"] / both["total"]).item()
