"""Distributed set-up, meters, timing and checkpoints."""
import gc
import logging
import os
import shutil
import sys
import time

import torch
import torch.distributed as dist


def init_distributed_mode(args):
    """Works with torchrun, torch.distributed.launch and plain python (one process)."""
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
        args.gpu = int(os.environ.get("LOCAL_RANK", args.local_rank))
        args.distributed = True
    else:
        args.rank = 0
        args.world_size = 1
        args.distributed = False
        if args.gpu is None:
            args.gpu = 0

    if torch.cuda.is_available():
        torch.cuda.set_device(args.gpu)
    elif args.dist_backend == "nccl":
        # NCCL only works with CUDA devices
        args.dist_backend = "gloo"

    if args.distributed:
        dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url,
                                world_size=args.world_size, rank=args.rank)
        dist.barrier()


def cleanup(args):
    if args.distributed:
        dist.barrier()
        gc.collect()  # DistributedDataParallel is freed by it, and holds the process group until then
        dist.destroy_process_group()


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def setup_logger(rank):
    """Only rank 0 logs."""
    logger = logging.getLogger("imagenet")
    logger.propagate = False
    logger.setLevel(logging.INFO if rank == 0 else logging.ERROR)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s", datefmt="%H:%M:%S"))
    logger.addHandler(handler)
    return logger


class AverageMeter:
    """Computes and stores the average and current value."""

    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.val = 0.0
        self.avg = 0.0
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        total = torch.tensor([self.sum, self.count], dtype=torch.float32, device=device)
        dist.all_reduce(total, dist.ReduceOp.SUM)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / max(self.count, 1)


class StepTimer:
    """Time of one step in ms, measured with CUDA events on the GPU."""

    def __init__(self):
        self.use_cuda = torch.cuda.is_available()
        if self.use_cuda:
            self.start_event = torch.cuda.Event(enable_timing=True)
            self.end_event = torch.cuda.Event(enable_timing=True)

    def start(self):
        if self.use_cuda:
            self.start_event.record()
        else:
            self.start_time = time.perf_counter()

    def stop(self):
        if self.use_cuda:
            self.end_event.record()
            torch.cuda.synchronize()
            return self.start_event.elapsed_time(self.end_event)
        return (time.perf_counter() - self.start_time) * 1000.0


def log_memory(logger, gpu):
    if not torch.cuda.is_available():
        return
    mb = 1024.0 * 1024.0
    logger.info("CUDA memory: %.0f MB allocated at most, %.0f MB reserved",
                torch.cuda.max_memory_allocated(gpu) / mb, torch.cuda.memory_reserved(gpu) / mb)


def accuracy(output, target, topk=(1,)):
    """Computes the accuracy over the k top predictions."""
    with torch.no_grad():
        maxk = min(max(topk), output.size(1))
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0)
            res.append(correct_k.mul_(100.0 / target.size(0)))
        return res


def save_checkpoint(state, is_best, filename):
    os.makedirs(os.path.dirname(filename) or ".", exist_ok=True)
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(os.path.dirname(filename), "model_best.pth.tar"))


def load_checkpoint(path, model, optimizer, scheduler, scaler, args):
    if torch.cuda.is_available():
        # Map model to be loaded to specified single gpu.
        checkpoint = torch.load(path, map_location="cuda:{}".format(args.gpu))
    else:
        checkpoint = torch.load(path, map_location="cpu")
    target = model.module if args.distributed else model
    target.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    if args.amp and checkpoint["scaler"]:
        scaler.load_state_dict(checkpoint["scaler"])
    return checkpoint["epoch"], checkpoint["best_acc1"]
