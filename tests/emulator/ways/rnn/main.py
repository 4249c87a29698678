import argparse
import math

import torch
import torch.nn as nn
from data import Corpus, batchify
from model import RNNModel

parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true", default=False, help="use CUDA")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--bptt", type=int, default=5)
parser.add_argument("--seed", type=int, default=1111)
args = parser.parse_args()

torch.manual_seed(args.seed)
if torch.cuda.is_available():
    if not args.cuda:
        print("WARNING: You have a CUDA device, so you should probably run with --cuda.")
    else:
        torch.cuda.manual_seed(args.seed)
device = torch.device("cuda" if args.cuda else "cpu")
corpus = Corpus()
train_data = batchify(corpus.train, 4, device)
model = RNNModel(corpus.ntokens, 8, 8, 1).to(device)
criterion = nn.CrossEntropyLoss()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def train(epoch):
    model.train()
    hidden = model.init_hidden(4)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        length = min(args.bptt, len(train_data) - 1 - i)
        data, targets = train_data[i:i + length], train_data[i + 1:i + 1 + length].view(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, corpus.ntokens), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.5)
        print("epoch {} batch {} loss {:.5f} ppl {:.3f}".format(epoch, batch, loss.item(), math.exp(loss.item())))


for epoch in range(1, args.epochs + 1):
    train(epoch)
with torch.no_grad():
    lengths = torch.tensor([5, 4, 2, 1])
    output, _ = model(train_data[:5], model.init_hidden(4), lengths)
    print(f"packed {output.abs().mean().item():.5f}")
if args.cuda:
    print("reserved", torch.cuda.memory_reserved() >= torch.cuda.memory_allocated() >= 0)
