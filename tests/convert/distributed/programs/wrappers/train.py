import argparse

import torch
import torch.nn as nn
from apex import amp
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O0")
args = parser.parse_args()

batch_size = 8
torch.manual_seed(0)
use_cuda = torch.cuda.is_available()
features, labels = torch.randn(32, 8), torch.randint(0, 4, (32,))
loader = DataLoader(TensorDataset(features, labels), batch_size=batch_size)

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
if use_cuda:
    model = model.cuda(0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
model = torch.compile(model, backend="eager")
criterion = nn.CrossEntropyLoss()

running_loss = 0.0
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        if use_cuda:
            x, y = x.cuda(0, non_blocking=True), y.cuda(0, non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 2 == 1:
            print(f"TRAIN {running_loss / 2:.6f}")
            running_loss = 0.0

if use_cuda:
    features, labels = features.cuda(), labels.cuda()
print("FINAL", criterion(model(features), labels).item())
torch.save(getattr(model, "_orig_mod", model).state_dict(), "model.pt")
