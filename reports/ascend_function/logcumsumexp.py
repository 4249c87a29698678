"""torch.logcumsumexp: a scan in steps that double."""

# npumigrate: skip-file

import torch

from ._floats import computed_in


def logcumsumexp(input, dim):
    """The logarithm of the sums of the exponentials up to each element."""
    value, dtype = computed_in(input)
    if value.ndim == 0:
        return value.to(dtype)
    found = value.transpose(dim, -1)
    step, size = 1, found.shape[-1]
    while step < size:
        found = torch.cat((found[..., :step], torch.logaddexp(found[..., step:], found[..., :-step])), -1)
        step *= 2
    return found.transpose(dim, -1).to(dtype)
