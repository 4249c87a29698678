import os

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, datamodule, device, max_epochs, log_dir="logs"):
        self.device = device
        self.model = model.to(device)
        self.optimizer = optimizer
        self.train_loader = datamodule.train_dataloader()
        self.val_loader = datamodule.val_dataloader()
        self.max_epochs = max_epochs
        self.log_dir = log_dir
        self.epoch = 0

    def loss(self, batch):
        (a, b), same = batch
        za, zb = self.model(a.to(self.device), b.to(self.device))
        distance = (za - zb).pow(2).sum(-1)
        same = same.to(self.device)
        return (same * distance + (1 - same) * F.relu(1 - distance)).mean()

    def train_one_epoch(self):
        self.model.train()
        epoch_loss = 0
        num_batches = 0
        for batch in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            self.optimizer.step()
            epoch_loss += loss.detach()
            num_batches += 1
        return (epoch_loss / num_batches).item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.loss(batch).item() for batch in self.val_loader]
        return sum(losses) / len(losses)

    def fit(self):
        while self.epoch < self.max_epochs:
            train_loss = self.train_one_epoch()
            val_loss = self.validate()
            print("TRAIN %.6f" % train_loss)
            self.epoch += 1
            self.save_checkpoint()
        return val_loss

    def save_checkpoint(self):
        if not os.path.exists(self.log_dir):
            os.makedirs(self.log_dir)
        torch.save(
            {"state_dict": self.model.state_dict(), "epoch": self.epoch},
            os.path.join(self.log_dir, f"epoch{self.epoch}.ckpt"),
        )
