"""The focal loss of logits, as the extension of maskrcnn-benchmark has it."""

# npumigrate: skip-file

import torch

functional = torch.nn.functional


def sigmoid_focalloss_forward(logits, targets, num_classes, gamma, alpha):
    """A loss for each class; classes count from 1, 0 is the background, and less is left out."""
    classes = torch.arange(1, num_classes + 1, device=logits.device)
    wanted = targets.view(-1, 1)
    own = (wanted == classes).to(logits.dtype)
    other = ((wanted >= 0) & (wanted != classes)).to(logits.dtype)
    chance = torch.sigmoid(logits)
    positive = (1 - chance).pow(gamma) * functional.logsigmoid(logits)
    negative = chance.pow(gamma) * functional.logsigmoid(-logits)
    return -(own * alpha * positive + other * (1 - alpha) * negative)
