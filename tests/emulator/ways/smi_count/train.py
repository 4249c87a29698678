import os
import subprocess

import torch
import torch.nn as nn


def gpu_count():
    return len(os.popen("nvidia-smi -L").read().strip().split("\n"))


def listed():
    output = subprocess.check_output(["nvidia-smi", "-L"]).decode()
    return len(output.strip().splitlines())


def driver():
    try:
        return subprocess.check_output(["nvidia-smi", "--version"]).decode()[:6]
    except (OSError, subprocess.CalledProcessError):
        return "none"


class Parts(nn.Module):
    """Half of the layers on each GPU."""

    def __init__(self, count):
        super().__init__()
        self.devices = [torch.device("cuda", index) for index in range(count)]
        self.layers = nn.ModuleList(nn.Linear(6, 6).to(device) for device in self.devices)

    def forward(self, x):
        for device, layer in zip(self.devices, self.layers):
            x = torch.relu(layer(x.to(device)))
        return x


def main():
    count = gpu_count()
    assert count == listed() == torch.cuda.device_count()
    torch.manual_seed(0)
    model = Parts(count)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = (model(torch.randn(4, 6)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} parts {count} loss {loss.item():.6f}")
    free, total = torch.cuda.mem_get_info(0)
    print("memory", 0 < free <= total, bool(driver()))


if __name__ == "__main__":
    main()
