import torch
from torch import nn


class LightModule(nn.Module):
    """Knows where it is: whoever moves it says so here."""

    def __init__(self):
        super().__init__()
        self._device = torch.device("cpu")

    @property
    def device(self):
        return self._device

    def to(self, *args, **kwargs):
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None:
            self._device = device
        return super().to(*args, **kwargs)

    def cuda(self, device=None):
        if device is None:
            device = torch.device("cuda", torch.cuda.current_device())
        elif isinstance(device, int):
            device = torch.device("cuda", index=device)
        self._device = device
        return super().cuda(device=device)

    def cpu(self):
        self._device = torch.device("cpu")
        return super().cpu()

    def training_step(self, batch, index):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError
