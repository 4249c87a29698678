import torch
import torch.nn.functional as F

from data import loaders
from features import Features
from net import build


def main():
    model = build(4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train, _ = loaders(8)
    features = Features()
    for step, (inputs, labels) in enumerate(train):
        hidden = model.body(inputs.cuda())
        features.add(hidden)
        loss = F.cross_entropy(model.head(hidden), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")
    print(f"spread {features.spread():.5f}")


if __name__ == "__main__":
    main()
