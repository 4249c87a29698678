import torch
from torch import nn


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(12, 3)

    def forward(self, inputs):
        hidden = self.first(inputs).relu()
        return self.second(hidden)


def main():
    model = Wrong().cuda()
    scores = model(torch.ones(4, 8).cuda())
    print(scores.shape)


if __name__ == "__main__":
    main()
