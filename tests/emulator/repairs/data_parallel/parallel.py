import os

from torch import nn

WRAPPERS = {"threads": "DataParallel", "none": "Identity"}


def wrap(model, how="threads"):
    """On all GPUs that the driver shows."""
    if os.path.isdir("/proc/driver/nvidia"):
        model = model.cuda()
    return getattr(nn, WRAPPERS[how])(model)
