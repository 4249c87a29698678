import torch
import torch.nn.functional as F

from data import loaders
from net import build
from parallel import wrap


def main():
    model = wrap(build(5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train, _ = loaders(8)
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(train):
            scores = model(inputs)
            loss = F.cross_entropy(scores, labels.to(scores.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
