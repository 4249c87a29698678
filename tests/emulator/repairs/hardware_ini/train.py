import argparse
import configparser
from pathlib import Path

import torch

from data import loaders
from engine import evaluate, train_one_epoch
from net import build


class Trainer:
    def __init__(self, config):
        self.kind = config["kinds"][config["run"]["kind"]].replace(" ", "")
        self.epochs = config.getint("run", "epochs")
        self.target = torch.device(self.kind, 0)
        self.model = build()
        self.model = self.model.to(self.target)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def fit(self, train, test):
        for epoch in range(self.epochs):
            train_one_epoch(self.model, train, self.optimizer, self.target, epoch)
        evaluate(self.model, test, self.target)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("run.ini"))
    parser.add_argument("--batch-size", type=int, default=8)
    return parser.parse_args()


def main():
    args = parse()
    config = configparser.ConfigParser()
    config.read(args.config)
    Trainer(config).fit(*loaders(args.batch_size))


if __name__ == "__main__":
    main()
