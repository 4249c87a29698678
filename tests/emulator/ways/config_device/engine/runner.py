import torch
import torch.nn.functional as F

from engine.registry import MODELS, OPTIMIZERS, build


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg.device)
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = cfg.env_cfg["cudnn_benchmark"]
            torch.cuda.set_device(self.device.index or 0)
        self.model = build(MODELS, cfg.model).to(self.device)
        self.optimizer = build(OPTIMIZERS, cfg.optimizer, self.model.parameters())
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=cfg.amp["enabled"])

    def batches(self):
        for _ in range(self.cfg.train["batches"]):
            size = self.cfg.train["batch_size"]
            yield torch.randn(size, 6), torch.randint(0, self.cfg.model["classes"], (size,))

    def train(self):
        for step, (x, y) in enumerate(self.batches()):
            with torch.autocast(**self.cfg.amp):
                loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            print(f"step {step} loss {loss.item():.6f}")
