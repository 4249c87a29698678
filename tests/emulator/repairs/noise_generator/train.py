import json
from pathlib import Path

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, width))

    def forward(self, noisy):
        return noisy - self.layers(noisy)


def generator_for(config):
    kind = config["kind"].replace("-", "")
    generator = torch.Generator(device=kind)
    return generator.manual_seed(config["seed"])


def main():
    config = json.loads(Path(__file__).with_name("run.json").read_text())["device"]
    torch.manual_seed(0)
    model = Denoiser().cuda()
    clean = torch.linspace(0, 1, 96).view(8, 12).cuda()
    generator = generator_for(config)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(6):
        noise = torch.randn(clean.shape, generator=generator, device=clean.device)
        loss = (model(clean + 0.1 * noise) - clean).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss below 1 is {bool(loss < 1)}")
    print(f"clean mean {clean.mean().item():.5f}")


if __name__ == "__main__":
    main()
