"""Recurrent and attention layers, in the manner of sequence toolkits."""
import torch
import torch as th
import torch.nn as nn
from torch.nn import LSTM, GRU, Embedding, MultiheadAttention  # expect: none
from torch.nn.utils import rnn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence  # expect: none


class Encoder(nn.Module):
    def __init__(self, vocab, dim, layers):
        super().__init__()
        self.embed = Embedding(vocab, dim, padding_idx=0)  # expect: none
        self.lstm = LSTM(dim, dim, layers, batch_first=True)  # expect: none
        self.deep = LSTM(dim, dim, layers, dropout=0.2)  # expect: partial torch.nn.LSTM
        self.gru = GRU(dim, dim)  # expect: unsupported torch.nn.GRU
        self.rnn = nn.RNN(dim, dim)  # expect: unsupported torch.nn.RNN
        self.cell = nn.RNNCell(dim, dim)  # expect: unsupported torch.nn.RNNCell
        self.attention = MultiheadAttention(dim, 8)  # expect: unsupported torch.nn.MultiheadAttention
        layer = nn.TransformerEncoderLayer(dim, 8)  # expect: none
        self.encoder = nn.TransformerEncoder(layer, 6)  # expect: unsupported torch.nn.TransformerEncoder
        self.decoder = th.nn.TransformerDecoder(nn.TransformerDecoderLayer(dim, 8), 6)  # expect: unsupported torch.nn.TransformerDecoder
        self.norm = nn.LayerNorm(dim)  # expect: none
        self.out = nn.AdaptiveLogSoftmaxWithLoss(dim, vocab, [10, 100])  # expect: unsupported torch.nn.AdaptiveLogSoftmaxWithLoss

    def forward(self, tokens, lengths):
        x = self.embed(tokens)
        packed = pack_padded_sequence(x, lengths, batch_first=True)  # expect: unsupported torch.nn.utils.rnn.pack_padded_sequence
        out, (h, c) = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)  # expect: unsupported torch.nn.utils.rnn.pad_packed_sequence
        mask = tokens.eq(0)  # expect: none
        out = out.masked_fill(mask.unsqueeze(-1), 0.0)  # expect: none
        ragged = rnn.pack_sequence([x])  # expect: unsupported torch.nn.utils.rnn.pack_sequence
        rows = rnn.unpack_sequence(ragged)  # expect: unsupported torch.nn.utils.rnn.unpack_sequence
        joined = rnn.pad_sequence(rows)  # expect: none
        same = pad_sequence(rows)  # expect: none
        bags = nn.functional.embedding_bag(tokens, self.embed.weight)  # expect: unsupported torch.nn.functional.embedding_bag
        return self.norm(out), h, c, joined, same, bags


class Tokenizer:
    def __init__(self, path, mode):
        with open(path, mode) as file:
            self.mode = file.mode  # expect: none
            self.words = file.read().split()

    def encode(self, text):
        ids = [self.words.index(word) for word in text.split()]
        return th.tensor(ids, dtype=th.long)  # expect: none


class Decoder(nn.TransformerDecoder):  # expect: unsupported torch.nn.TransformerDecoder
    def generate(self, memory, steps: int):
        logits = torch.softmax(memory, dim=-1)  # expect: none
        for _ in range(steps):
            token = torch.multinomial(logits, 1)  # expect: none
            best = logits.argmax(-1)  # expect: none
            common = logits.mode(-1).values  # expect: unsupported torch.Tensor.mode
        probs = th.cumsum(logits, -1)  # expect: none
        noise = -torch.empty_like(logits).exponential_().log()  # expect: none
        heavy = torch.empty_like(logits).cauchy_()  # expect: fallback torch.Tensor.cauchy_
        lognormal = torch.empty_like(logits).log_normal_()  # expect: fallback torch.Tensor.log_normal_
        geometric = logits.clone().geometric_(0.5)  # expect: fallback torch.Tensor.geometric_
        return token, best, common, probs, noise, heavy, lognormal, geometric


class Cell(nn.RNNBase):  # expect: unsupported torch.nn.RNNBase
    pass


def sparse_rows(weights: th.Tensor):
    rows = weights.to_sparse()  # expect: unsupported torch.Tensor.to_sparse
    dense = rows.to_dense()  # expect: unsupported torch.Tensor.to_dense
    csr = weights.to_sparse_csr()  # expect: unsupported torch.Tensor.to_sparse_csr
    masked = weights.sparse_mask(rows)  # expect: unsupported torch.Tensor.sparse_mask
    made = th.sparse_csr_tensor([0], [0], [1.0])  # expect: unsupported torch.sparse_csr_tensor
    coo = torch.sparse_coo_tensor([[0]], [1.0])  # expect: none
    return dense, csr, masked, made, coo


scipy_matrix = __import__("scipy.sparse").sparse.eye(3)
dense_again = scipy_matrix.todense()  # expect: none
