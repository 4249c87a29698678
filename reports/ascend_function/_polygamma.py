"""The digamma function and its derivatives: recurrence and the asymptotic series.

From the second derivative on they are nan below 0."""

# npumigrate: skip-file

import math

import torch

from ._floats import computed_in

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)  # B2, B4, …
_FAR = 10  # from here on the series gives all digits


class _Polygamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n, input):
        ctx.n = n
        ctx.save_for_backward(input)
        return _digamma(input) if n == 0 else _higher(n, input)

    @staticmethod
    def backward(ctx, gradient):
        (input,) = ctx.saved_tensors
        return None, gradient * _Polygamma.apply(ctx.n + 1, input)


def polygamma(n, input):
    """The n-th derivative of the digamma function."""
    value, dtype = computed_in(input)
    return _Polygamma.apply(n, value).to(dtype)


def _digamma(x):
    nan = torch.full_like(x, float("nan"))
    turned = torch.where(x < 0, 1 - x, x)
    found = torch.zeros_like(x)
    for _ in range(_FAR):
        near = turned < _FAR
        found = torch.where(near, found - 1 / turned, found)
        turned = torch.where(near, turned + 1, turned)
    square = 1 / (turned * turned)
    series = torch.zeros_like(x)
    for place in range(len(_BERNOULLI), 0, -1):
        series = (series + _BERNOULLI[place - 1] / (2 * place)) * square
    found = found + turned.log() - 0.5 / turned - series
    found = torch.where(turned.isinf(), turned, found)
    part = x - x.trunc()
    reflected = found - math.pi / torch.tan(math.pi * part)
    found = torch.where(x < 0, torch.where(part == 0, nan, reflected), found)
    signed = torch.where(torch.signbit(x), -torch.ones_like(x), torch.ones_like(x))
    return torch.where(x == 0, -signed * float("inf"), found)


def _higher(n, x):
    """(-1)^(n+1) n! zeta(n + 1, x) by Euler and Maclaurin; below 0 the first is reflected, as in torch."""
    turned = torch.where(x <= 0, 1 - x, x) if n == 1 else x
    power = n + 1
    total = torch.zeros_like(x)
    there = turned
    for _ in range(_FAR):
        total = total + there ** (-power)
        there = there + 1
    total = total + there ** (-n) / n + 0.5 * there ** (-power)
    factor = float(power)
    term = there ** (-power - 1)
    for place, number in enumerate(_BERNOULLI, 1):
        total = total + number * factor / math.factorial(2 * place) * term
        factor = factor * (power + 2 * place - 1) * (power + 2 * place)
        term = term / (there * there)
    total = torch.where(turned.isinf(), torch.zeros_like(x), total)
    sign = 1 if n % 2 else -1
    total = sign * math.factorial(n) * total
    if n == 1:
        sine = torch.sin(math.pi * (x - x.trunc()))
        return torch.where(x <= 0, (math.pi / sine) ** 2 - total, total)
    nan = torch.full_like(x, float("nan"))
    infinite = torch.full_like(x, sign * float("inf"))
    return torch.where(x < 0, nan, torch.where(x == 0, infinite, total))
