import copy

import torch
from torch import nn
from torchvision import models


def build_model(cfg):
    builder = getattr(models, cfg.arch)
    return builder(num_classes=cfg.num_classes, dropout=cfg.dropout)


class ModelEMA:
    """Exponential moving average of the weights, kept on the same device as the model."""

    def __init__(self, model, decay=0.999):
        self.module = copy.deepcopy(model)
        self.module.eval()
        for p in self.module.parameters():
            p.requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        # ramp the decay up in the first steps
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        state = model.state_dict()
        for name, ema_value in self.module.state_dict().items():
            value = state[name].detach()
            if ema_value.dtype.is_floating_point:
                ema_value.mul_(decay).add_(value, alpha=1 - decay)
            else:
                ema_value.copy_(value)

    def state_dict(self):
        return {"module": self.module.state_dict(), "updates": self.updates}

    def load_state_dict(self, state):
        self.module.load_state_dict(state["module"])
        self.updates = state["updates"]


class LabelSmoothingLoss(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits, target):
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        nll = -log_probs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        smooth = -log_probs.mean(dim=-1)
        return ((1 - self.smoothing) * nll + self.smoothing * smooth).mean()
