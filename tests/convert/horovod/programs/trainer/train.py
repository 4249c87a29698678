"""A trainer class, and the collectives in a file of their own; gradients are summed and clipped."""

import torch
from comm import average, is_main, own_device, seed, start
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
        self.optimizer = hvd.DistributedOptimizer(
            torch.optim.Adam(self.model.parameters(), lr=0.01), self.model.named_parameters(), op=hvd.Sum
        )
        hvd.broadcast_parameters(list(self.model.named_parameters()), 0)
        hvd.broadcast_optimizer_state(self.optimizer, 0)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
        loss.backward()
        self.optimizer.synchronize()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        with self.optimizer.skip_synchronize():
            self.optimizer.step()
        return loss, norm

    def save(self, path):
        if is_main():
            torch.save(self.model.state_dict(), path)


def main():
    start()
    seed(3)
    trainer = Trainer(own_device())
    generator = torch.Generator().manual_seed(1)
    dataset = TensorDataset(
        torch.randn(40, 8, generator=generator), torch.randint(3, (40,), generator=generator)
    )
    sampler = DistributedSampler(dataset, hvd.size(), hvd.rank())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(dataset, batch_size=5, sampler=sampler):
            loss, norm = trainer.step(x, y)
            loss, norm = average(loss), average(norm)
            if is_main():
                print(f"loss {loss:.6f} norm {norm:.6f}", flush=True)
    trainer.save("model.pt")


if __name__ == "__main__":
    main()
