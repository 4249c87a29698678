import random

import torch
import torch.nn as nn

from batches import BatchIterator

batch_size = 8
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    random.seed(1)
    torch.manual_seed(1)
    examples = [(torch.randn(8), i % 4) for i in range(72)]
    train_iter = BatchIterator(examples[:64], batch_size, shuffle=True)
    dev_iter = BatchIterator(examples[64:], 4)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=2 * len(train_iter))
    for epoch in range(2):
        model.train()
        total = 0.0
        for step, (x, y) in enumerate(train_iter):
            loss = criterion(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print("TRAIN %.6f" % (total / len(train_iter)))
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in dev_iter:
            total += criterion(model(x.to(device)), y.to(device)).item()
            count += 1
    print("FINAL", total / count)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
