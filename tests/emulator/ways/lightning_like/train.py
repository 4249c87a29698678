import argparse

import torch
import torch.nn.functional as F
from light.module import LightModule
from light.trainer import Trainer
from torch.utils.data import DataLoader, TensorDataset


class Classifier(LightModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))

    def forward(self, x):
        noise = torch.zeros(x.shape, device=self.device)
        return self.net(x + noise)

    def training_step(self, batch, index):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(12, 6), torch.randint(0, 3, (12,)))
    module = Classifier(0.01)
    trainer = Trainer.from_argparse_args(args)
    module = trainer.fit(module, DataLoader(data, batch_size=4))
    copy = Classifier(0.01).cuda()
    copy.load_state_dict(module.state_dict())
    x = torch.ones(1, 6).cuda()
    print(f"last {copy(x).sum().item():.5f} {module(x).sum().item():.5f}")
