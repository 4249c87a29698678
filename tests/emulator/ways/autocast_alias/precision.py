from contextlib import nullcontext
from functools import partial

import torch
from torch import autocast


def scope_of(name):
    """Mixed precision, or nothing."""
    if name == "none":
        return nullcontext
    dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}[name]
    return partial(autocast, device_type="cuda", dtype=dtype)


def scaler_of(name):
    return torch.cuda.amp.GradScaler(enabled=name == "float16")


def get_autocast(amp):
    scope = autocast if amp else (lambda *_: nullcontext())
    return scope
