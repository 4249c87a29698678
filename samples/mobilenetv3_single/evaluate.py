"""Accuracy and latency of a checkpoint written by train.py.

    python evaluate.py --checkpoint runs/mobilenetv3_small/best.pt
"""
import argparse
import time

import torch

from config import TrainConfig, add_config_options
from dataset import build_dataloaders
from engine import evaluate
from model import build_model


@torch.no_grad()
def measure_latency(model, device, image_size, repeat=20):
    model.eval()
    x = torch.randn(1, 3, image_size, image_size, device=device)
    for _ in range(3):  # warm up
        model(x)
    # CUDA kernels are asynchronous, so wait for them before reading the clock
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        model(x)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1000 / repeat


def main():
    parser = argparse.ArgumentParser(description="Evaluate a MobileNetV3 checkpoint")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu",
                        help="device to run on, for example cuda:0 or cpu")
    add_config_options(parser)
    args = parser.parse_args()

    device = torch.device(args.device)
    checkpoint = torch.load(args.checkpoint, map_location=device)
    cfg = TrainConfig(**checkpoint["config"]).override(args)

    model = build_model(cfg)
    model.load_state_dict(checkpoint["ema"]["module"])
    model = model.to(device)

    _, val_loader = build_dataloaders(cfg, device)
    val_loss, acc = evaluate(model, val_loader, device, cfg)
    print("Latency: {:.2f} ms per image".format(measure_latency(model, device, cfg.image_size)))
    print("FINAL val_loss={:.6f} acc={:.2f}".format(val_loss, acc))


if __name__ == "__main__":
    main()
