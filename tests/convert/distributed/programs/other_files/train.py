import torch

import engine
from data import make_loaders
from networks import build, count


def make_optimizer(net):
    weights = [p for n, p in net.named_parameters() if "bias" not in n]
    biases = [p for n, p in net.named_parameters() if "bias" in n]
    return torch.optim.SGD([{"params": weights}, {"params": biases, "lr": 0.1}], lr=0.5)


def run():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader = make_loaders()
    net = build(device)
    print(count(net), "parameters")
    optimizer = make_optimizer(net)
    for epoch in range(3):
        engine.train_one_epoch(net, train_loader, optimizer, device)
        loss = engine.validate(net, val_loader, device)
        print(epoch, loss)
    print("FINAL", loss)
    engine.save(net, "model.pt")


if __name__ == "__main__":
    run()
