import importlib.util
import itertools

import torch


def gpu_names():
    """The names of the GPUs, from a package that asks the driver."""
    if importlib.util.find_spec("GPUtil") is None:
        return []
    import GPUtil

    return [gpu.name for gpu in GPUtil.getGPUs()]


def level(size, stride):
    cells = torch.tensor(list(itertools.product(range(size), repeat=2)), dtype=torch.float32)
    centres = (cells + 0.5) * stride
    return torch.cat([centres, torch.full_like(centres, stride)], dim=1)


def anchors(sizes=(4, 2), strides=(8, 16)):
    made = [level(size, stride) for size, stride in zip(sizes, strides)]
    if gpu_names():
        made = [each.cuda() for each in made]
    return made
