"""torch.linalg.lstsq on the CPU."""

# npumigrate: skip-file

import torch

from ._on_cpu import on_cpu


def lstsq(A, B, rcond=None, *, driver=None):
    """What torch gives, computed on the CPU, on the device of the matrices; gradients go the same way."""
    return on_cpu(torch.linalg.lstsq, A, B, rcond, driver=driver)
