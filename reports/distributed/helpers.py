"""Functions that a program for several devices calls: its conversion copies them into its files."""

import builtins
import gc
import logging
import os

import torch
import torch.distributed as dist
from ranks import join_ranks


class ShareOfRank:
    """Every so many-th of some batches, as many on each rank; what is left at the end goes to none."""

    def __init__(self, batches):
        self.batches = batches
        self.rank, self.ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)

    def __len__(self):
        return len(self.batches) // self.ranks

    def __iter__(self):
        number = -1
        for number, batch in enumerate(self.batches):
            if number % self.ranks == self.rank:
                own = batch
            if (number + 1) % self.ranks == 0:
                yield own
        if 0 <= number < self.ranks - 1:
            raise RuntimeError(f"{number + 1} batches for {self.ranks} ranks")


def own_turn(draw):
    """What a rank draws where all of them draw in turn: each does all of it, so they go on alike."""
    if not dist.is_initialized():
        return draw()
    return [draw() for _ in range(dist.get_world_size())][dist.get_rank()]


def seed_alike(*seeds):
    """Let every rank draw the same random numbers."""
    number = torch.randint(2**31, (1,)).to("cuda" if torch.cuda.is_available() else "cpu")
    dist.broadcast(number, 0)
    for seed in seeds:
        seed(number.item())


def sum_over_ranks(value):
    """The sum of a number or a tensor over the ranks: each has it of its own share of the data."""
    if not dist.is_initialized():
        return value
    total = torch.as_tensor(value).detach()
    kind = torch.float32 if total.is_floating_point() else torch.int64
    total = total.to("cuda" if torch.cuda.is_available() else "cpu", kind, copy=True)
    dist.all_reduce(total)
    return total.to(value.device, value.dtype) if torch.is_tensor(value) else total.item()


def on_any_rank(condition):
    """Whether a condition holds on one of the ranks: all of them take the same way."""
    if not dist.is_initialized():
        return condition
    found = torch.tensor(float(bool(condition)), device="cuda" if torch.cuda.is_available() else "cpu")
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return bool(found.item())


def setup_distributed():
    """Join the ranks that the launcher has started, each on its card; without a launcher, be the only one."""
    join_ranks()
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend)
    if dist.get_rank() != 0:  # one rank speaks for all
        builtins.print = lambda *args, **kwargs: None
        logging.disable(logging.INFO)


def leave_distributed():
    """Part from the other ranks; this comes last in a program."""
    gc.collect()  # frees wrapped models: Gloo can hang where one of them is the last to hold the group
    dist.destroy_process_group()
