import torch

from data import loaders
from engine import evaluate, train_one_epoch
from net import build
from report import look


def main():
    device = torch.device("cuda")
    found = look()
    print("memory known:", found.memory > 0)
    if found.has_bf16:
        torch.set_float32_matmul_precision("high")
    model = build(2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train, test = loaders(8)
    train_one_epoch(model, train, optimizer, device, 0)
    evaluate(model, test, device)


if __name__ == "__main__":
    main()
