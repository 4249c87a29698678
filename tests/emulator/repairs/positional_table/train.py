import torch
import torch.nn.functional as F

from model import Tagger


def batches(count, size, length):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        words = torch.randint(0, 40, (size, length), generator=generator)
        yield words, words % 5


def main():
    torch.manual_seed(0)
    model = Tagger().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step, (words, tags) in enumerate(batches(5, 4, 12)):
        scores = model(words.cuda())
        loss = F.cross_entropy(scores.flatten(0, 1), tags.flatten().cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
