import torch

from data import loaders
from engine import evaluate
from losses import WeightedLoss
from net import build

STAGES = {"evaluation": evaluate}


def main():
    model = build().cuda()
    loss_of = WeightedLoss([10, 4, 2])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train, test = loaders(8)
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(train):
            loss = loss_of(model(inputs.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.5f}")
    for stage in STAGES.values():
        stage(model, test, "cuda")


if __name__ == "__main__":
    main()
