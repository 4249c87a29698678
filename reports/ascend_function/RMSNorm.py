"""torch.nn.RMSNorm, written out."""

# npumigrate: skip-file

import torch

from .rms_norm import rms_norm


class RMSNorm(torch.nn.Module):
    """A layer with the parameters, and the names of them, of torch's."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        weight = None
        if elementwise_affine:
            weight = torch.nn.Parameter(torch.ones(shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)

    def reset_parameters(self):
        """Start again with ones."""
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)

    def forward(self, x):
        """The normalized input."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        """As torch's is shown."""
        shown = (self.normalized_shape, self.eps, self.elementwise_affine)
        return "{}, eps={}, elementwise_affine={}".format(*shown)
