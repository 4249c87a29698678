"""Reads checkpoints of several kinds."""

from functools import partial
from pathlib import Path

import torch

read_weights = partial(torch.load, weights_only=True)


def newest(folder):
    return max(Path(folder).glob("*.pt"), key=lambda path: path.name)


def restore(model, folder):
    state = read_weights(newest(folder))
    model.load_state_dict(state["model"])
    return state["epoch"]
