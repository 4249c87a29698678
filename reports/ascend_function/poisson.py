"""torch.poisson: counts from the sums of exponential times, or rounded normal numbers."""

# npumigrate: skip-file

import torch

_LARGE = 64.0  # from here on a normal distribution stands for it
_MOST = 160  # events that are waited for below


def poisson(input, generator=None):
    """Random numbers of the same distribution; of rates of 64 and more by their normal approximation."""
    with torch.no_grad():
        rate = input.float()
        small = rate.clamp(max=_LARGE)
        passed = torch.zeros_like(small)
        count = torch.zeros_like(small)
        for _ in range(_MOST):
            passed = passed + torch.empty_like(small).exponential_(1, generator=generator)
            count = count + (passed < small)
        noise = torch.empty_like(rate).normal_(0, 1, generator=generator)
        many = (rate + rate.sqrt() * noise).round().clamp(min=0)
        found = torch.where(rate < _LARGE, count, many).to(input.dtype)
    return found + input * 0 if input.requires_grad else found
