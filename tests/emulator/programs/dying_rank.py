"""One rank is killed while the others wait for it: they must end by themselves."""

import multiprocessing
import os
import signal
import sys
import time


def work(rank):
    import torch
    import torch.distributed as dist

    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        dist.all_reduce(torch.ones(1, device=f"npu:{rank}"))
        torch.npu.synchronize()
    except RuntimeError as error:
        print(f"ended after {time.monotonic() - start:.0f} s", flush=True)
        print(repr(str(error)), flush=True)
        os._exit(3)
    os._exit(0)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(rank,)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print([process.exitcode for process in processes])
