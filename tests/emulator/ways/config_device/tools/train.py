import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import torch

from engine.config import Config
from engine.runner import Runner


def main():
    parser = argparse.ArgumentParser(description="Train a model")
    parser.add_argument("config")
    parser.add_argument("--cfg-options", nargs="+", default=[])
    args = parser.parse_args()
    cfg = Config.fromfile(args.config)
    cfg.merge_from_list(args.cfg_options)
    torch.manual_seed(cfg.seed)
    Runner(cfg).train()


if __name__ == "__main__":
    main()
