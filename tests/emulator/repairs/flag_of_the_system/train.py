from pathlib import Path

import torch
import torch.nn.functional as F

from data import loaders
from net import build


def count_gpus():
    return len(list(Path("/proc/driver/nvidia").glob("gpus/*")))


use_gpu = count_gpus() > 0


def prepared(batch):
    if use_gpu:
        batch = [each.cuda(non_blocking=True) for each in batch]
    return batch


def main():
    model = build()
    if use_gpu:
        model = model.cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    train, _ = loaders(8)
    for epoch in range(2):
        for step, batch in enumerate(train):
            inputs, labels = prepared(batch)
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
