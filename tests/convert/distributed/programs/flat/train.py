import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
batch_size = 16

features = torch.randn(16, 8)
labels = torch.randint(0, 4, (16,))
loader = DataLoader(TensorDataset(features, labels), batch_size=batch_size, shuffle=True)  # all of it at once

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(3):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, loss.item())

# The end.
print("FINAL", criterion(model(features.to(device)), labels.to(device)).item())
torch.save(model.state_dict(), "model.pt")
