import torch
import torch.nn.functional as F

from data import loaders
from metrics import Totals
from net import build


def main():
    model = build().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    train, _ = loaders(6)
    for epoch in range(2):
        totals = Totals(3)
        for inputs, labels in train:
            inputs, labels = inputs.cuda(), labels.cuda()
            scores = model(inputs)
            loss = F.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            totals.add(loss, scores, labels)
        totals.show(epoch)


if __name__ == "__main__":
    main()
