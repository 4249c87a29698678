import importlib.util

import torch

HAS_NVML = importlib.util.find_spec("pynvml") is not None


class Average:
    """Weights that follow those of a model slowly."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}
        if HAS_NVML:
            self.shadow = {name: value.cuda() for name, value in self.shadow.items()}

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            self.shadow[name].mul_(self.decay).add_(value, alpha=1 - self.decay)

    def norm(self):
        return sum(value.norm().item() for value in self.shadow.values())
