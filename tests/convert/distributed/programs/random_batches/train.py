import random

import torch
import torch.nn as nn
from torch.nn import functional as F

batch_size = 16
block_size = 6
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1337)
random.seed(1337)
text = "the quick brown fox jumps over the lazy dog. " * 10
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
train_data, val_data = data[:400], data[400:]


def get_batch(split, count):
    data = train_data if split == "train" else val_data
    starts = [random.randint(0, len(data) - block_size - 1) for _ in range(count)]
    x = torch.stack([data[i : i + block_size] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
    return x.to(device), y.to(device)


class CharRNN(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.hidden = hidden
        self.encoder = nn.Embedding(n, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, n)

    def forward(self, x, state):
        out, state = self.rnn(self.encoder(x), state)
        return self.decoder(out), state

    def init_hidden(self, count):
        return torch.zeros(1, count, self.hidden)


model = CharRNN(len(chars), 8)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)


def loss_of(x, y):
    state = torch.zeros(1, len(x), 8, device=device)
    out, state = model(x, state)
    return F.cross_entropy(out.reshape(-1, len(chars)), y.reshape(-1))


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [loss_of(*get_batch("val", 4)).item() for _ in range(2)]
    model.train()
    return sum(losses) / len(losses)


def train_step(x, y):
    state = model.init_hidden(batch_size).to(device)
    optimizer.zero_grad()
    out, state = model(x, state)
    loss = F.cross_entropy(out.reshape(-1, len(chars)), y.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


running = 0.0
for step in range(4):
    if step % 2 == 1:
        print("VAL", estimate_loss())
    running += train_step(*get_batch("train", batch_size))
print(f"mean {running / 4:.6f}")
print("FINAL", loss_of(train_data[None, :-1].to(device), train_data[None, 1:].to(device)).item())
torch.save(model.state_dict(), "model.pt")
