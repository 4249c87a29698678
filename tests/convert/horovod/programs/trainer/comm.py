import random

import torch
from horovod import torch as hvd


def start():
    hvd.init()


def seed(number):
    random.seed(number + hvd.rank())
    torch.manual_seed(number + hvd.rank())


def own_device():
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", hvd.local_rank())


def is_main():
    return hvd.rank() == 0


def average(value):
    return hvd.allreduce(torch.as_tensor(value).detach()).item()
