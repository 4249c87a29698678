import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    vocab_size: int = 40
    max_seq_len: int = 16
    max_batch_size: int = 2


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x_ = x.float()
        return (x_ * torch.rsqrt(x_.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads, self.head_dim = args.n_heads, args.dim // args.n_heads
        self.wqkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)
        shape = (args.max_batch_size, args.max_seq_len, args.n_heads, self.head_dim)
        self.cache_k = torch.zeros(shape).cuda()
        self.cache_v = torch.zeros(shape).cuda()

    def forward(self, x, start, mask):
        b, n, _ = x.shape
        q, k, v = (part.view(b, n, self.n_heads, self.head_dim) for part in self.wqkv(x).chunk(3, -1))
        self.cache_k = self.cache_k.to(q)
        self.cache_v = self.cache_v.to(q)
        self.cache_k[:b, start:start + n] = k
        self.cache_v[:b, start:start + n] = v
        keys, values = self.cache_k[:b, :start + n], self.cache_v[:b, :start + n]
        scores = torch.matmul(q.transpose(1, 2), keys.permute(0, 2, 3, 1)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(q)
        return self.wo(torch.matmul(scores, values.transpose(1, 2)).transpose(1, 2).reshape(b, n, -1))


class Transformer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embed = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(Attention(args) for _ in range(args.n_layers))
        self.norms = nn.ModuleList(RMSNorm(args.dim) for _ in range(args.n_layers))
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    @torch.inference_mode()
    def forward(self, tokens, start):
        h = self.embed(tokens)
        mask = None
        if tokens.shape[1] > 1:
            mask = torch.full((1, 1, tokens.shape[1], tokens.shape[1]), float("-inf"), device=tokens.device)
            mask = torch.triu(mask, diagonal=start + 1).type_as(h)
        for layer, norm in zip(self.layers, self.norms):
            h = h + layer(norm(h), start, mask)
        return self.output(h[:, -1, :]).float()
