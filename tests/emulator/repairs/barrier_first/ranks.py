import torch.distributed as dist


def start(backend):
    dist.init_process_group(backend)
