import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))
from mylib.dist_utils import init_dist


def parse_args():
    parser = argparse.ArgumentParser(description='Train a detector')
    parser.add_argument('config', help='train config file path')
    parser.add_argument('--work-dir', help='the dir to save logs and models')
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none', help='job launcher')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
    args = parser.parse_args()
    if 'LOCAL_RANK' not in os.environ:
        os.environ['LOCAL_RANK'] = str(args.local_rank)
    return args


def main():
    args = parse_args()
    if args.launcher == 'none':
        distributed = False
    else:
        distributed = True
        init_dist(args.launcher)
    model = nn.Linear(4, 2).cuda()
    if distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    model(torch.ones(3, 4).cuda()).sum().backward()
    size = dist.get_world_size() if dist.is_initialized() else 1
    rank = dist.get_rank() if dist.is_initialized() else 0
    print(f"RANK {rank} of {size} on {next(model.parameters()).device}", flush=True)


if __name__ == '__main__':
    main()
