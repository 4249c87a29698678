import argparse

import torch
from net import Encoder

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    encoder = Encoder().place()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.5)
    batch = torch.randn(3, 6).cuda()
    for step in range(args.steps):
        output, seen = encoder(batch)
        loss = output.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f} seen {seen[0].item():.6f} {seen[1].item():.6f}")
    scripted = torch.jit.script(encoder)
    scripted.save("encoder.pt")
    loaded = torch.jit.load("encoder.pt", map_location="cuda:0")
    output, seen = loaded(batch)
    print(f"loaded {output.sum().item():.6f} {seen.sum().item():.6f}")
    traced = torch.jit.trace(lambda x: x * 2 + (1 if x.is_cuda else 1), (batch,))
    print(f"traced {traced(batch).sum().item():.6f}")
