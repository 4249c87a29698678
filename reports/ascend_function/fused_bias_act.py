"""A bias and an activation, as the extension of StyleGAN2 has it."""

# npumigrate: skip-file

import torch


def fused_bias_act(input, bias, refer, act, grad, alpha, scale):
    """``act`` 1 is linear, 3 a leaky ReLU of the slope ``alpha``; ``grad``: the order of the derivative."""
    found = input
    if bias.numel():
        found = found + bias.view(1, -1, *[1] * (input.ndim - 2))
    if grad > 1:
        found = torch.zeros_like(found)
    elif act == 3:
        sign = refer if grad else found
        found = torch.where(sign > 0, found, found * alpha)
    return found * scale
