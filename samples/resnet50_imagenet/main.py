"""ResNet-50 training on ImageNet with DistributedDataParallel and mixed precision.

    torchrun --nproc_per_node=8 main.py --data /path/to/imagenet --amp
"""
import argparse
import os
import random
import time

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torchvision.models as models
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP

from data import build_loaders
from utils import (AverageMeter, StepTimer, accuracy, cleanup, init_distributed_mode, is_main_process,
                   load_checkpoint, log_memory, save_checkpoint, setup_logger)


def get_args():
    parser = argparse.ArgumentParser(description="PyTorch ImageNet training (DDP)")
    # data
    parser.add_argument("--data", default="./imagenet", metavar="DIR", help="path to the ImageNet folder")
    parser.add_argument("--synthetic", action="store_true",
                        help="train on random data made in memory (no dataset needed)")
    parser.add_argument("--image-size", default=224, type=int, help="training crop size")
    parser.add_argument("--num-classes", default=1000, type=int)
    parser.add_argument("-j", "--workers", default=4, type=int, help="data loading workers per process")
    # optimisation
    parser.add_argument("-a", "--arch", default="resnet50", help="model architecture")
    parser.add_argument("--epochs", default=90, type=int)
    parser.add_argument("--steps", default=0, type=int, help="stop each epoch after N steps (0: full epoch)")
    parser.add_argument("-b", "--batch-size", default=64, type=int, help="batch size per GPU")
    parser.add_argument("--lr", default=0.1, type=float, help="learning rate for a total batch of 256")
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--lr-step", default=30, type=int, help="epochs between learning rate drops")
    parser.add_argument("--warmup-epochs", default=0, type=int)
    parser.add_argument("--label-smoothing", default=0.0, type=float)
    parser.add_argument("--amp", action="store_true", help="use CUDA automatic mixed precision")
    parser.add_argument("--sync-bn", action="store_true", help="convert BatchNorm to SyncBatchNorm")
    # distributed
    parser.add_argument("--gpu", default=None, type=int, help="GPU id to use when not launched by torchrun")
    parser.add_argument("--local-rank", "--local_rank", default=0, type=int,
                        help="set by torch.distributed.launch")
    parser.add_argument("--dist-url", default="env://", help="url used to set up distributed training")
    parser.add_argument("--dist-backend", default="nccl", help="distributed backend (nccl or gloo)")
    # misc
    parser.add_argument("--seed", default=None, type=int, help="seed for initializing training")
    parser.add_argument("-p", "--print-freq", default=10, type=int)
    parser.add_argument("--output-dir", default="./output", help="where to write the checkpoints")
    parser.add_argument("--resume", default="", metavar="PATH", help="path to the latest checkpoint")
    parser.add_argument("-e", "--evaluate", action="store_true", help="evaluate on the validation set only")
    return parser.parse_args()


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    cudnn.deterministic = True
    cudnn.benchmark = False


def build_model(args):
    model = models.__dict__[args.arch](num_classes=args.num_classes)
    if args.sync_bn and args.distributed and torch.cuda.is_available():
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if torch.cuda.is_available():
        model = model.cuda(args.gpu)
    if args.distributed:
        # DDP averages the gradients over all GPUs
        if torch.cuda.is_available():
            model = DDP(model, device_ids=[args.gpu], output_device=args.gpu)
        else:
            model = DDP(model)
    return model


def build_scheduler(optimizer, args):
    main_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=args.lr_step, gamma=0.1)
    if args.warmup_epochs == 0:
        return main_scheduler
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=args.warmup_epochs)
    return torch.optim.lr_scheduler.ChainedScheduler([warmup, main_scheduler])


def train_one_epoch(loader, model, criterion, optimizer, scaler, epoch, args, logger):
    losses = AverageMeter("loss")
    top1 = AverageMeter("acc1")
    data_time = AverageMeter("data")
    timer = StepTimer()
    num_steps = min(args.steps, len(loader)) if args.steps > 0 else len(loader)

    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        if i >= num_steps:
            break
        data_time.update(time.time() - end)
        timer.start()

        if torch.cuda.is_available():
            images = images.cuda(args.gpu, non_blocking=True)
            target = target.cuda(args.gpu, non_blocking=True)

        with autocast(enabled=args.amp):
            output = model(images)
            loss = criterion(output, target)

        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

        step_ms = timer.stop()
        acc1, _ = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))

        if i % args.print_freq == 0 or i == num_steps - 1:
            speed = images.size(0) * args.world_size / max(step_ms / 1000.0, 1e-6)
            logger.info("epoch %d step %d/%d loss %.6f acc1 %.2f lr %.5f data %.3fs %.1f img/s",
                        epoch, i + 1, num_steps, losses.val, top1.avg,
                        optimizer.param_groups[0]["lr"], data_time.avg, speed)
        end = time.time()

    if args.distributed:
        losses.all_reduce()
        top1.all_reduce()
    return losses.avg, top1.avg


@torch.no_grad()
def validate(loader, model, criterion, args, logger):
    losses = AverageMeter("loss")
    top1 = AverageMeter("acc1")
    top5 = AverageMeter("acc5")

    model.eval()
    for i, (images, target) in enumerate(loader):
        if args.steps > 0 and i >= args.steps:
            break
        if torch.cuda.is_available():
            images = images.cuda(args.gpu, non_blocking=True)
            target = target.cuda(args.gpu, non_blocking=True)
        with autocast(enabled=args.amp):
            output = model(images)
            loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        top5.update(acc5.item(), images.size(0))

    if args.distributed:
        for meter in (losses, top1, top5):
            meter.all_reduce()
    logger.info("validation: loss %.6f acc1 %.2f acc5 %.2f", losses.avg, top1.avg, top5.avg)
    return losses.avg, top1.avg, top5.avg


def run(args):
    """Trains and validates, or only validates; returns the last losses and accuracies."""
    logger = setup_logger(args.rank)

    if torch.cuda.is_available():
        cudnn.benchmark = True
        logger.info("Running on %d GPU(s): %s", args.world_size, torch.cuda.get_device_name(args.gpu))
    else:
        logger.warning("CUDA is not available, training on the CPU will be slow")
        if args.amp:
            logger.warning("--amp needs CUDA, turning it off")
            args.amp = False
    if args.seed is not None:
        set_seed(args.seed)

    model = build_model(args)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    if torch.cuda.is_available():
        criterion = criterion.cuda(args.gpu)

    # linear scaling rule
    lr = args.lr * args.batch_size * args.world_size / 256
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=args.momentum,
                                weight_decay=args.weight_decay)
    scheduler = build_scheduler(optimizer, args)
    scaler = GradScaler(enabled=args.amp)

    start_epoch, best_acc1 = 0, 0.0
    if args.resume:
        start_epoch, best_acc1 = load_checkpoint(args.resume, model, optimizer, scheduler, scaler, args)
        logger.info("=> loaded checkpoint '%s' (epoch %d)", args.resume, start_epoch)

    train_loader, val_loader, train_sampler = build_loaders(args)

    if args.evaluate:
        train_loss = float("nan")
        val_loss, acc1, acc5 = validate(val_loader, model, criterion, args, logger)
    else:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats(args.gpu)
        start_time = time.time()
        train_loss = val_loss = acc1 = acc5 = float("nan")
        for epoch in range(start_epoch, args.epochs):
            if train_sampler is not None:
                train_sampler.set_epoch(epoch)
            train_loss, _ = train_one_epoch(train_loader, model, criterion, optimizer, scaler, epoch,
                                            args, logger)
            val_loss, acc1, acc5 = validate(val_loader, model, criterion, args, logger)
            scheduler.step()

            is_best = acc1 > best_acc1
            best_acc1 = max(acc1, best_acc1)
            if is_main_process():
                save_checkpoint({
                    "epoch": epoch + 1,
                    "arch": args.arch,
                    "model": model.module.state_dict() if args.distributed else model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "best_acc1": best_acc1,
                }, is_best, os.path.join(args.output_dir, "checkpoint.pth.tar"))
            log_memory(logger, args.gpu)
        logger.info("training took %.1fs, best acc1 %.2f", time.time() - start_time, best_acc1)

    return train_loss, val_loss, acc1, acc5


def main():
    args = get_args()
    init_distributed_mode(args)
    results = run(args)
    cleanup(args)  # the model is gone: it would keep the process group alive
    if args.rank == 0:
        print("FINAL train_loss={:.6f} val_loss={:.6f} acc1={:.2f} acc5={:.2f}".format(*results), flush=True)


if __name__ == "__main__":
    main()
