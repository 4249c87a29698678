from __future__ import print_function

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

batch_size = 16


class Noise(torch.utils.data.Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(16, 8), torch.randint(0, 4, (16,))

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        print("Train Epoch: {} [{}/{}]".format(epoch, batch_idx * len(data), len(train_loader.dataset)))


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            test_loss += F.nll_loss(model(data), target, reduction="sum").item()
    return test_loss / len(test_loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    parser.add_argument("--save-model", action="store_true", default=True)
    args = parser.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(0)
    device = torch.device("cuda") if use_cuda else torch.device("cpu")

    train_kwargs = {"batch_size": batch_size}
    test_kwargs = {"batch_size": 4}
    extra = {"num_workers": 0, "shuffle": True}
    train_kwargs.update(extra)
    data = Noise()
    train_loader = torch.utils.data.DataLoader(data, **train_kwargs)
    test_loader = torch.utils.data.DataLoader(data, **test_kwargs)

    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4), nn.LogSoftmax(1)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        loss = test(model, device, test_loader)
    print("FINAL", loss)
    if args.save_model:
        torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
