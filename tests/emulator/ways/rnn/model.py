import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, input, hidden, lengths=None):
        emb = self.encoder(input)
        if lengths is not None:
            emb = pack_padded_sequence(emb, lengths)
        output, hidden = self.rnn(emb, hidden)
        if lengths is not None:
            output, _ = pad_packed_sequence(output)
        return self.decoder(output), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.data.new(self.nlayers, bsz, self.nhid).zero_()
