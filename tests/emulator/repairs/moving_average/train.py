import torch
import torch.nn.functional as F

from data import loaders
from ema import Average
from net import build


def main():
    model = build()
    average = Average(model)
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    train, _ = loaders(8)
    for epoch in range(2):
        for inputs, labels in train:
            loss = F.cross_entropy(model(inputs.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        print(f"epoch {epoch} loss {loss.item():.5f} average {average.norm():.5f}")


if __name__ == "__main__":
    main()
