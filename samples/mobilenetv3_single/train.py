"""Train MobileNetV3 on one GPU.

    python train.py --config configs/mobilenetv3_small.yaml --data /path/to/imagenet
"""
import argparse
import os
import random

import numpy as np
import torch

from config import TrainConfig, add_config_options
from dataset import build_dataloaders
from engine import evaluate, train_one_epoch
from model import LabelSmoothingLoss, ModelEMA, build_model


def parse_config():
    parser = argparse.ArgumentParser(description="MobileNetV3 training on a single CUDA card")
    parser.add_argument("--config", default=None, help="YAML file with the values of TrainConfig")
    add_config_options(parser)
    args = parser.parse_args()
    cfg = TrainConfig.from_yaml(args.config) if args.config else TrainConfig()
    return cfg.override(args)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def print_device_info(device):
    if device.type == "cuda":
        props = torch.cuda.get_device_properties(torch.cuda.current_device())
        print("Using CUDA device: {} ({:.1f} GB)".format(props.name, props.total_memory / 1024 ** 3))
    else:
        print("CUDA not found, using the CPU")


def save(path, cfg, epoch, model, ema, optimizer, scheduler, scaler, best_acc):
    torch.save({
        "epoch": epoch,
        "model": model.state_dict(),
        "ema": ema.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "best_acc": best_acc,
        "config": cfg.to_dict(),
    }, path)


def main():
    cfg = parse_config()
    seed_everything(cfg.seed)
    os.makedirs(cfg.output_dir, exist_ok=True)

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print_device_info(device)

    train_loader, val_loader = build_dataloaders(cfg, device)

    model = build_model(cfg).to(device)
    ema = ModelEMA(model, cfg.ema_decay)
    criterion = LabelSmoothingLoss(cfg.label_smoothing).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum,
                                weight_decay=cfg.weight_decay, nesterov=True)
    steps_per_epoch = min(cfg.steps, len(train_loader)) if cfg.steps else len(train_loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=cfg.epochs * steps_per_epoch)
    scaler = torch.cuda.amp.GradScaler(enabled=cfg.amp and device.type == "cuda")

    start_epoch = 0
    best_acc = 0.0
    if cfg.resume:
        checkpoint = torch.load(cfg.resume, map_location=device)
        model.load_state_dict(checkpoint["model"])
        ema.load_state_dict(checkpoint["ema"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        if scaler.is_enabled() and checkpoint["scaler"]:
            scaler.load_state_dict(checkpoint["scaler"])
        start_epoch = checkpoint["epoch"]
        best_acc = checkpoint["best_acc"]
        print("Resumed from {} at epoch {}".format(cfg.resume, start_epoch))

    train_loss = val_loss = acc = float("nan")
    for epoch in range(start_epoch, cfg.epochs):
        train_loss = train_one_epoch(model, ema, train_loader, criterion, optimizer, scheduler, scaler,
                                     device, epoch, cfg)
        val_loss, acc = evaluate(ema.module, val_loader, device, cfg)
        print("Epoch [{}/{}] train loss {:.6f} val loss {:.6f} val acc {:.2f}%".format(
            epoch + 1, cfg.epochs, train_loss, val_loss, acc))

        if acc >= best_acc:
            best_acc = acc
            save(os.path.join(cfg.output_dir, "best.pt"), cfg, epoch + 1, model, ema, optimizer,
                 scheduler, scaler, best_acc)
        save(os.path.join(cfg.output_dir, "last.pt"), cfg, epoch + 1, model, ema, optimizer,
             scheduler, scaler, best_acc)

        if device.type == "cuda":
            print("GPU memory: {:.2f} GB".format(torch.cuda.max_memory_allocated() / 1024 ** 3))
            torch.cuda.empty_cache()

    print("FINAL train_loss={:.6f} val_loss={:.6f} acc={:.2f} best_acc={:.2f}".format(
        train_loss, val_loss, acc, best_acc))


if __name__ == "__main__":
    main()
