import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main(epochs=2, batch_size=4, accumulation=2):
    torch.manual_seed(0)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    if torch.cuda.is_available():
        model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    optimizer.zero_grad()
    for epoch in range(epochs):
        for i, (data, target) in enumerate(loader):
            if torch.cuda.is_available():
                data, target = data.cuda(), target.cuda()
            # forward
            loss = nn.functional.cross_entropy(model(data), target)
            (loss / accumulation).backward()  # and back
            if (i + 1) % accumulation == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
    if torch.cuda.is_available():
        x, y = x.cuda(), y.cuda()
    print("FINAL", nn.functional.cross_entropy(model(x), y).item())
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
