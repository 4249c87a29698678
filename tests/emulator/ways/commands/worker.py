import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--task", type=int, required=True)
parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
args = parser.parse_args()

torch.manual_seed(args.task)
net = torch.nn.Linear(4, 2).to(args.device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(6, 4).to(args.device)
for step in range(2):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"task {args.task} step {step} loss {loss.item():.6f}", flush=True)
