"""Stands in for apex.amp: as that does, it refuses a model that is wrapped already."""

from contextlib import contextmanager

from torch.nn.parallel import DistributedDataParallel

_prepared = []


def initialize(models, optimizers=None, opt_level="O1"):
    if isinstance(models, DistributedDataParallel):
        raise RuntimeError("parallel wrappers come after amp.initialize")
    if optimizers is None:
        raise RuntimeError("the optimizer comes before amp.initialize")
    _prepared.append(optimizers)
    return models, optimizers


@contextmanager
def scale_loss(loss, optimizer):
    if optimizer not in _prepared:
        raise RuntimeError("amp.initialize has not seen this optimizer")
    yield loss * 4
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad /= 4
