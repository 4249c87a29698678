import json
from pathlib import Path

import torch

from data import loaders
from engine import evaluate, train_one_epoch
from net import build
from timing import StepTimer


def main():
    options = json.loads(Path(__file__).with_name("options.json").read_text())
    device = torch.device("cuda")
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train, test = loaders(8)
    timer = StepTimer("".join(options["backend"]))
    for epoch in range(options["epochs"]):
        with timer:
            train_one_epoch(model, train, optimizer, device, epoch)
    print("peak", timer.peak(), "MiB")
    evaluate(model, test, device)


if __name__ == "__main__":
    main()
