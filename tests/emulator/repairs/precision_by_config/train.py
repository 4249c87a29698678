import json
from pathlib import Path

import torch
import torch.nn.functional as F

from data import loaders
from net import build


def precision(config):
    kind = "".join(config["type"])
    return torch.autocast(device_type=kind, dtype=getattr(torch, config["dtype"]))


def main():
    config = json.loads(Path(__file__).with_name("amp.json").read_text())
    model = build().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train, _ = loaders(8)
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(train):
            with precision(config):
                scores = model(inputs.cuda())
                loss = F.cross_entropy(scores, labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} {scores.dtype} loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
