import torch
from torch.nn.functional import cross_entropy


def train_one_epoch(net, loader, optimizer, device):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        cross_entropy(net(x.to(device)), y.to(device)).backward()
        optimizer.step()


@torch.no_grad()
def validate(net, loader, device):
    total = sum(cross_entropy(net(x.to(device)), y.to(device)).item() for x, y in loader)
    return total / len(loader)


def save(net, path):
    torch.save(net.state_dict(), path)
