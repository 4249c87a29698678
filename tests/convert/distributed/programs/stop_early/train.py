import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

batch_size = 8
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.9)


def fit():
    best, wait = float("inf"), 0
    for epoch in range(30):
        total = 0.0
        for data, target in loader:
            loss = nn.functional.cross_entropy(model(data.to(device)), target.to(device))
            if not torch.isfinite(loss):
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        last = total / len(loader)
        if last < best - 0.02:
            best, wait = last, 0
            torch.save(model.state_dict(), "best.pt")
        else:
            wait += 1
            if wait >= 2:
                print("stopped in", epoch)
                return epoch


fit()
print("FINAL", nn.functional.cross_entropy(model(x.to(device)), y.to(device)).item())
torch.save(model.state_dict(), "model.pt")
