import functools
import logging
import os
from contextlib import contextmanager, nullcontext

import torch
import torch.cuda as tc
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.cuda.amp import GradScaler, autocast
from torch.cuda.comm import broadcast_coalesced  # expect: absent torch.cuda.comm.broadcast_coalesced
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.optim import DistributedOptimizer  # expect: none
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # expect: none
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger(__name__)


@contextmanager
def annotated(name):
    torch.cuda.nvtx.range_push(name)  # expect: none
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()  # expect: none


def traced(function):
    @functools.wraps(function)
    @torch.cuda.nvtx.range("step")  # expect: none
    def inner(*args, **kwargs):
        tc.nvtx.mark("inside")  # expect: none
        return function(*args, **kwargs)

    return inner


class Trainer:
    def __init__(self, model, device, mode="fsdp"):
        self.device = torch.device(device)  # expect: none
        self.mode = mode  # expect: none
        self.scaler = GradScaler()  # expect: none
        self.stream = torch.cuda.Stream()  # expect: none
        self.external = torch.cuda.ExternalStream(0)  # expect: absent torch.cuda.ExternalStream
        self.model = FSDP(model)  # expect: none
        self.plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}  # expect: unsupported torch.distributed.tensor.parallel.ColwiseParallel; unsupported torch.distributed.tensor.parallel.RowwiseParallel
        parallelize_module(model, None, self.plan)  # expect: unsupported torch.distributed.tensor.parallel.parallelize_module
        self.optimizer = DistributedOptimizer(torch.optim.SGD, [])  # expect: unsupported torch.distributed.optim.DistributedOptimizer

    def save(self):
        with FSDP.summon_full_params(self.model):  # expect: unsupported torch.distributed.fsdp.FullyShardedDataParallel.summon_full_params
            state = FSDP.optim_state_dict(self.model, self.optimizer)  # expect: unsupported torch.distributed.fsdp.FullyShardedDataParallel.optim_state_dict
        torch.save(state, "state.pt")  # expect: none

    @traced
    def step(self, batch):
        with autocast():  # expect: none
            loss = self.model(batch)
        self.scaler.scale(loss).backward()  # expect: none
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # expect: unsupported torch.nn.utils.clip_grad_norm_
        torch.nn.utils.clip_grad_value_(self.model.parameters(), 1.0)  # expect: none
        self.scaler.step(self.optimizer)  # expect: none
        dist.all_reduce(loss)  # expect: none
        return loss.item()  # expect: none

    def report(self):
        if self.mode == "fsdp":  # expect: none
            log.info("power %s", torch.cuda.power_draw())  # expect: absent torch.cuda.power_draw
            log.info("heat %s", torch.cuda.temperature())  # expect: absent torch.cuda.temperature
            log.info("clock %s", torch.cuda.clock_rate())  # expect: absent torch.cuda.clock_rate
        log.info("peak %s", torch.cuda.max_memory_allocated())  # expect: none
        log.info("nccl %s", torch.cuda.nccl.version())  # expect: absent torch.cuda.nccl.version
        torch.cuda.empty_cache()  # expect: none
        torch.cuda.profiler.start()  # expect: absent torch.cuda.profiler.start
        torch.cuda.synchronize()  # expect: none
        torch.cuda.profiler.stop()  # expect: absent torch.cuda.profiler.stop
        torch.cuda.cudart().cudaProfilerStart()  # expect: absent torch.cuda.cudart


def spread(tensors, devices):
    copies = broadcast_coalesced(tensors, devices)  # expect: absent torch.cuda.comm.broadcast_coalesced
    pieces = torch.cuda.comm.scatter(tensors[0], devices)  # expect: absent torch.cuda.comm.scatter
    whole = torch.cuda.comm.gather(pieces)  # expect: absent torch.cuda.comm.gather
    total = tc.comm.reduce_add(tensors)  # expect: absent torch.cuda.comm.reduce_add
    return copies, whole, total


def main(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)  # expect: none
    group = dist.new_group([0])  # expect: none
    sync = nullcontext() if rank else annotated("rank")
    with sync:
        dist.barrier()  # expect: none
    gathered = [torch.zeros(1) for _ in range(world)]  # expect: none
    dist.all_gather(gathered, torch.ones(1), group=group)  # expect: none
    model = DDP(torch.nn.Linear(1, 1), device_ids=[rank])  # expect: none
    dist.destroy_process_group()  # expect: none
    return model, os.environ.get("MASTER_ADDR")


if __name__ == "__main__":
    mp.spawn(main, args=(8,), nprocs=8)  # expect: none
    torch.autograd.profiler.emit_nvtx()  # expect: unsupported torch.autograd.profiler.emit_nvtx
    torch.compiler.disable(main)  # expect: none
    torch.compile(main, backend="inductor")  # expect: partial torch.compile
    torch.compile(main)  # expect: none
