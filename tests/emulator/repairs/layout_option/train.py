import argparse

import torch
import torch.nn.functional as F

from small import Small, images


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layout", default="contiguous_format")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    layout = getattr(torch, args.layout)
    torch.manual_seed(0)
    model = Small().cuda()
    model = model.to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = images()
    for step in range(args.steps):
        batch = inputs.to("cuda", memory_format=layout)
        loss = F.cross_entropy(model(batch), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
