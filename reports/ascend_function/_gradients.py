"""The gradients of a function that is made of torch operators."""

# npumigrate: skip-file

import torch


def gradients(function, inputs, gradient):
    """Those of some inputs, for the gradient of the result."""
    with torch.enable_grad():
        leaves = [each.detach().requires_grad_() for each in inputs]
        return torch.autograd.grad(function(*leaves), leaves, gradient.to(leaves[0].dtype))
