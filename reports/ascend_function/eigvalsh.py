"""torch.linalg.eigvalsh on the CPU."""

# npumigrate: skip-file

import torch

from ._on_cpu import on_cpu


def eigvalsh(A, UPLO="L"):
    """What torch gives, computed on the CPU, on the device of the matrices; gradients go the same way."""
    return on_cpu(torch.linalg.eigvalsh, A, UPLO)
