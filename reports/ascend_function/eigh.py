"""torch.linalg.eigh on the CPU."""

# npumigrate: skip-file

import torch

from ._on_cpu import on_cpu


def eigh(A, UPLO="L"):
    """What torch gives, computed on the CPU, on the device of the matrices; gradients go the same way."""
    return on_cpu(torch.linalg.eigh, A, UPLO)
