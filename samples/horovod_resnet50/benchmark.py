"""How many images per second a torchvision model trains on, with random images: data-parallel over Horovod."""

import argparse
import statistics
import time

import horovod.torch as hvd
import torch
import torch.nn.functional as F
import torchvision


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--batch-size", type=int, default=32, help="images per GPU and step")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--lr", type=float, default=0.0125, help="learning rate for one GPU")
    parser.add_argument("--warmup", type=int, default=10, help="steps that are not measured")
    parser.add_argument("--rounds", type=int, default=10, help="measurements")
    parser.add_argument("--steps", type=int, default=10, help="steps of a measurement")
    parser.add_argument("--clip", type=float, default=0.0, help="largest norm of the gradients (0: any)")
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as 16-bit floats")
    parser.add_argument("--adasum", action="store_true", help="combine gradients by Adasum, not by the average")
    parser.add_argument("--checkpoint", default="", help="file for the trained parameters")
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def log(*words):
    if hvd.rank() == 0:
        print(*words, flush=True)


def main():
    args = parse_args()
    use_cuda = torch.cuda.is_available() and not args.no_cuda

    hvd.init()
    if use_cuda:
        torch.cuda.set_device(hvd.local_rank())  # one GPU for each process
        torch.backends.cudnn.benchmark = True
    torch.manual_seed(args.seed + hvd.rank())  # every process has data of its own

    model = getattr(torchvision.models, args.model)(num_classes=args.classes)
    if use_cuda:
        model.cuda()

    # With n processes a step is made of n batches. Adasum does without a larger learning rate.
    scale = 1 if args.adasum else hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * scale, momentum=0.9)
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=compression,
        op=hvd.Adasum if args.adasum else hvd.Average,
    )

    # All processes start from what the first one has.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    images = torch.randn(args.batch_size, 3, args.image_size, args.image_size)
    labels = torch.randint(args.classes, (args.batch_size,))
    if use_cuda:
        images, labels = images.cuda(), labels.cuda()

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if args.clip:
            optimizer.synchronize()  # the norm is that of the averaged gradients
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
        return loss.detach()

    log(f"{args.model}, batches of {args.batch_size} on each of {hvd.size()} devices")
    model.train()
    for _ in range(args.warmup):
        step()

    speeds = []
    loss = torch.zeros(())
    for number in range(args.rounds):
        start = time.perf_counter()
        for _ in range(args.steps):
            loss = step()
        mean = hvd.allreduce(loss, name="loss").item()  # waits for the GPU, too
        speed = args.batch_size * args.steps / (time.perf_counter() - start)
        speeds.append(speed)
        log(f"round {number}: {speed:.1f} images/s per device, loss {mean:.6f}")

    speeds = hvd.allgather(torch.tensor(speeds), name="speeds").tolist()
    if args.checkpoint and hvd.rank() == 0:
        torch.save(model.state_dict(), args.checkpoint)
    log(f"per device: {statistics.mean(speeds):.1f} images/s, all: {hvd.size() * statistics.mean(speeds):.1f}")
    log(f"FINAL loss={mean:.6f}")


if __name__ == "__main__":
    main()
