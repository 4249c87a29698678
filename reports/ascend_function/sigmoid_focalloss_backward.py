"""The gradient of the focal loss of logits."""

# npumigrate: skip-file

from ._gradients import gradients
from .sigmoid_focalloss_forward import sigmoid_focalloss_forward


def sigmoid_focalloss_backward(logits, targets, d_losses, num_classes, gamma, alpha):
    """The gradient of the logits."""

    def forward(logits):
        return sigmoid_focalloss_forward(logits, targets, num_classes, gamma, alpha)

    return gradients(forward, (logits,), d_losses)[0]
