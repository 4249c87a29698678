import torch
import torch.nn as nn


class TransformerLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
        self.position = nn.Parameter(torch.zeros(1, 64, config.width))
        layer = nn.TransformerEncoderLayer(config.width, config.heads, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, config.layers)
        self.head = nn.Linear(config.width, config.vocabulary)
        self.criterion = nn.CrossEntropyLoss(ignore_index=0)

    def forward(self, input_ids, mask=None, labels=None):
        x = self.embed(input_ids) + self.position[:, : input_ids.size(1)]
        causal = nn.Transformer.generate_square_subsequent_mask(input_ids.size(1)).to(x.device)
        logits = self.head(self.encoder(x, mask=causal))
        loss = None
        if labels is not None:
            loss = self.criterion(logits.reshape(-1, logits.size(-1)), labels.reshape(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, tokens, steps):
        for _ in range(steps):
            logits, _ = self(tokens)
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], 1)
        return tokens
