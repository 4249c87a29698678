import torch

FORMATS = {"nhwc": torch.channels_last, "nchw": torch.contiguous_format}


class Pool:
    """Buffers that batches are copied into."""

    def __init__(self, shape, layout):
        self.shape, self.layout = shape, FORMATS[layout]

    def new(self):
        return torch.empty(self.shape, device="cuda", memory_format=self.layout)
