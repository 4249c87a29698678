import torch
import torch.nn as nn
from options import TrainOptions, parse


class Trainer:
    def __init__(self, options: TrainOptions):
        self.options = options
        self.device = torch.device(options.place)
        index = int(options.place[5:]) if options.place.startswith("cuda") else None
        if index is not None:
            torch.cuda.set_device(index)
        self.dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[options.precision]
        self.model = nn.GRU(4, 8, batch_first=True).to(self.device)
        self.head = nn.Linear(8, 1).to(self.device)
        parameters = [*self.model.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.Adagrad(parameters, lr=0.05)
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)

    def loss(self, x):
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            output, _ = self.model(x)
            return (self.head(output[:, -1]) - x.sum((1, 2))[:, None]).pow(2).mean()

    def train(self):
        for epoch in range(self.options.epochs):
            self.start.record()
            x = torch.randn(self.options.batch_size, 5, 4).to(self.device)
            loss = self.loss(x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.end.record()
            torch.cuda.synchronize(self.device)
            assert self.start.elapsed_time(self.end) >= 0
            print(f"epoch {epoch} batch {self.options.batch_size} loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(parse(TrainOptions)).train()
