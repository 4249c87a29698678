import argparse
import os
import sys
import torch
import torch.distributed as dist
import torch.nn as nn
from launch import launch


def default_argument_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config-file", default="", metavar="FILE", help="path to config file")
    parser.add_argument("--num-gpus", type=int, default=1, help="number of gpus *per machine*")
    parser.add_argument("--num-machines", type=int, default=1, help="total number of machines")
    parser.add_argument("--machine-rank", type=int, default=0, help="the rank of this machine (unique per machine)")
    port = 2**15 + 2**14 + hash(os.getuid() if sys.platform != "win32" else 1) % 2**14
    parser.add_argument("--dist-url", default="tcp://127.0.0.1:{}".format(port))
    return parser


def main(args):
    model = nn.Linear(4, 2).cuda()
    if dist.is_initialized():
        model = nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    model(torch.ones(3, 4).cuda()).sum().backward()
    size = dist.get_world_size() if dist.is_initialized() else 1
    rank = dist.get_rank() if dist.is_initialized() else 0
    print(f"RANK {rank} of {size} on {next(model.parameters()).device}", flush=True)


if __name__ == "__main__":
    args = default_argument_parser().parse_args()
    launch(main, args.num_gpus, num_machines=args.num_machines, machine_rank=args.machine_rank,
           dist_url=args.dist_url, args=(args,))
