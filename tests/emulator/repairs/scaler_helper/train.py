import torch
import torch.nn.functional as F

from data import loaders
from mixed import MixedPrecision
from net import build

KINDS = dict(zip(("host", "accelerator"), ("cpu", "cu" + "da")))


def main():
    model = build().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mixed = MixedPrecision(KINDS["accelerator"])
    train, _ = loaders(8)
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(train):
            optimizer.zero_grad()
            with mixed.context():
                loss = F.cross_entropy(model(inputs.cuda()), labels.cuda())
            mixed.step(loss, optimizer)
            print(f"epoch {epoch} step {step} loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
