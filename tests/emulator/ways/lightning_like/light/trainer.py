import torch


class Trainer:
    def __init__(self, max_epochs=1, gpus=0, precision=32):
        self.max_epochs = max_epochs
        self.gpus = gpus
        self.precision = precision

    @classmethod
    def from_argparse_args(cls, args):
        return cls(args.max_epochs, args.gpus)

    @property
    def on_gpu(self):
        return self.gpus > 0 and torch.cuda.is_available()

    def transfer(self, batch, device):
        if isinstance(batch, torch.Tensor):
            return batch.to(device)
        return type(batch)(self.transfer(item, device) for item in batch)

    def fit(self, module, loader):
        module = module.cuda(0) if self.on_gpu else module
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            for index, batch in enumerate(loader):
                batch = self.transfer(batch, module.device)
                loss = module.training_step(batch, index)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(f"epoch {epoch} step {index} loss {loss.item():.6f}")
        return module
