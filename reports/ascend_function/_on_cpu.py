"""A round trip to the CPU, which says so once."""

# npumigrate: skip-file

import warnings

import torch

_told = set()


def on_cpu(function, *arguments, **others):
    """What a function gives for the arguments on the CPU, on the device of the first tensor."""
    if function not in _told:
        _told.add(function)
        warnings.warn(function.__name__ + " has no NPU kernel: it runs on the CPU", stacklevel=3)
    device = next(each.device for each in arguments if torch.is_tensor(each))
    found = function(*map(_host, arguments), **{name: _host(each) for name, each in others.items()})
    if torch.is_tensor(found):
        return found.to(device)
    moved = tuple(each.to(device) for each in found)
    return type(found)(moved)


def _host(value):
    return value.cpu() if torch.is_tensor(value) else value
