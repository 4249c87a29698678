import argparse
import os
import subprocess
import sys

import torch
import torch.nn as nn


def save(path, epoch, model, optimizer, scaler):
    state = {
        "epoch": epoch,
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state_all(),
    }
    torch.save(state, path)


def resume(path, model, optimizer, scaler):
    checkpoint = torch.load(path, weights_only=False)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scaler.load_state_dict(checkpoint["scaler"])
    torch.set_rng_state(checkpoint["rng"].cpu())
    torch.cuda.set_rng_state_all([state.cpu() for state in checkpoint["cuda_rng"]])
    return checkpoint["epoch"] + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume", default="", help="path of a checkpoint")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    data = torch.randn(8, 4)
    start = 0
    if args.resume and os.path.isfile(args.resume):
        start = resume(args.resume, model, optimizer, scaler)
        print(f"resumed at epoch {start}")
    for epoch in range(start, args.epochs):
        for step in range(2):
            x = data[step * 4:step * 4 + 4].cuda(non_blocking=True)
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            print(f"epoch {epoch} step {step} loss {loss.item():.6f}")
        save("last.pth", epoch, model, optimizer, scaler)
    print(f"memory is counted: {torch.cuda.max_memory_allocated() >= 0}")


if __name__ == "__main__":
    main()
    if len(sys.argv) == 3:
        command = [sys.executable, __file__, "--epochs", "3", "--resume", "last.pth"]
        sys.exit(subprocess.run(command).returncode)
