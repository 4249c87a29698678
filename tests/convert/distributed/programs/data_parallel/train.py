import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

batch_size = 8
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
x, y = torch.randn(24, 8), torch.randint(0, 4, (24,))
train_loader = DataLoader(dataset=TensorDataset(x, y), batch_size=batch_size, shuffle=False)

model = Net()
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)
model.to(device)

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for epoch in range(2):
    for data, target in train_loader:
        output = model(data.to(device))
        loss = criterion(output, target.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

print("FINAL", criterion(model(x.to(device)), y.to(device)).item())
state = model.module.state_dict() if isinstance(model, nn.DataParallel) else model.state_dict()
torch.save(state, "model.pt")
