import torch
import torch.nn.functional as F

from buffers import Pool
from small import Small, images


def main():
    torch.manual_seed(1)
    model = Small().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    inputs, labels = images()
    pool = Pool(inputs.shape, "nhwc")
    for step in range(4):
        batch = pool.new()
        batch.copy_(inputs)
        loss = F.cross_entropy(model(batch), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
