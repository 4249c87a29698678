import torch
import torch.nn.functional as F
from torch import nn

from graph import ring


class Convolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside)

    def forward(self, adjacency, features):
        support = self.linear(features)
        return torch.sparse.mm(adjacency, support)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Convolution(128, 128), Convolution(128, 128)
        self.head = nn.Linear(128, 3)

    def forward(self, adjacency, features):
        hidden = self.first(adjacency, features).relu()
        return self.head(self.second(adjacency, hidden).relu())


def main():
    torch.manual_seed(0)
    model = Network().cuda()
    adjacency = ring(9).cuda()
    features, labels = torch.randn(9, 128).cuda(), (torch.arange(9) % 3).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(5):
        loss = F.cross_entropy(model(adjacency, features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
