import time

import torch
from torch import nn


def train_one_epoch(model, ema, loader, criterion, optimizer, scheduler, scaler, device, epoch, cfg):
    model.train()
    use_amp = cfg.amp and device.type == "cuda"
    num_steps = min(cfg.steps, len(loader)) if cfg.steps else len(loader)
    total_loss = 0.0
    seen = 0
    start = time.time()

    for step, (images, target) in enumerate(loader):
        if step == num_steps:
            break
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)

        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cuda", dtype=torch.float16, enabled=use_amp):
            logits = model(images)
            loss = criterion(logits, target)

        scaler.scale(loss).backward()
        if cfg.clip_grad > 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip_grad)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        ema.update(model)

        total_loss += loss.item() * images.size(0)
        seen += images.size(0)
        if step % cfg.print_freq == 0 or step == num_steps - 1:
            if device.type == "cuda":
                torch.cuda.synchronize()
            print("Epoch [{}/{}] step [{}/{}] loss {:.6f} lr {:.6f} {:.1f} img/s".format(
                epoch + 1, cfg.epochs, step + 1, num_steps, loss.item(), optimizer.param_groups[0]["lr"],
                seen / (time.time() - start)))

    return total_loss / max(seen, 1)


@torch.inference_mode()
def evaluate(model, loader, device, cfg):
    model.eval()
    use_amp = cfg.amp and device.type == "cuda"
    criterion = nn.CrossEntropyLoss()
    total_loss = 0.0
    correct = 0
    seen = 0
    for step, (images, target) in enumerate(loader):
        if cfg.steps and step == cfg.steps:
            break
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        with torch.autocast(device_type="cuda", dtype=torch.float16, enabled=use_amp):
            logits = model(images)
        total_loss += criterion(logits.float(), target).item() * images.size(0)
        correct += (logits.argmax(dim=1) == target).sum().item()
        seen += images.size(0)
    return total_loss / max(seen, 1), 100.0 * correct / max(seen, 1)
