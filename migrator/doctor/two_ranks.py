"""Two ranks over HCCL, each of which says what it does before it begins: the doctor's self-test.

It is run as a file by the Python that is tested, which may have no npumigrate.
"""

import sys


def say(number: int, step: str) -> None:
    """In one piece, as the ranks speak at the same time."""
    sys.stdout.write(f"{number} {step}\n")
    sys.stdout.flush()


def rank(number: int, size: int, address: str) -> None:
    """Take an NPU, form a group, add up a tensor, wait for the other rank."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist
    import torch_npu  # noqa: F401

    say(number, "torch.npu.set_device")
    torch.npu.set_device(number)
    value = torch.full((1024,), number + 1.0).to("npu")
    say(number, "init_process_group('hccl')")
    limit = timedelta(seconds=120)
    dist.init_process_group("hccl", init_method=address, timeout=limit, rank=number, world_size=size)
    say(number, "all_reduce")
    dist.all_reduce(value)
    if value.cpu().ne(size * (size + 1) / 2).any():
        raise ValueError(f"the sum is {value[0].item()}")
    say(number, "barrier")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    say(0, "import torch_npu")
    import torch.multiprocessing
    import torch_npu  # noqa: F401

    torch.multiprocessing.spawn(rank, (2, sys.argv[1]), 2)
