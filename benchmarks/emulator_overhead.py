"""What the emulated NPU costs: a training step and the start, against plain torch on the CPU.

python -m benchmarks.emulator_overhead [--model resnet50] [--batch 8] [--size 128] [--steps 9] [--threads N]
    [--ranks 2]

Two processes take turns, step by step, so that a busy machine slows both; they have the same number of
threads. `--model gpt` is a small transformer with thousands of small operators in a step; `--size` is its
number of tokens.
With `--ranks` the step is that of DistributedDataParallel, over Gloo and over HCCL; whole runs take turns.
Where the machine is not quiet, look at the processor's time of one thread.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

# One step for each line on standard input; ranks take a number of steps. On standard output the seconds of
# each, by the clock and of the processor.
PROGRAM = """
import os, sys, time, torch
from torch.nn import functional
device, model, batch, size, threads, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
rank = int(os.environ.get("RANK", "0"))
if device == "npu":
    torch.npu.set_device(rank)
torch.set_num_threads(threads)
torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(64) for _ in range(2))
        self.of_all, self.out = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
        self.register_buffer("hidden", torch.tril(torch.ones(size, size)) == 0)

    def forward(self, x):
        parts = self.of_all(self.norms[0](x)).split(64, 2)
        query, key, value = (part.view(batch, size, 4, 16).transpose(1, 2) for part in parts)
        scores = (query @ key.transpose(-2, -1) / 4).masked_fill(self.hidden, float("-inf")).softmax(-1)
        x = x + self.out((scores @ value).transpose(1, 2).reshape(batch, size, 64))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class GPT(torch.nn.Sequential):
    def __init__(self):
        blocks = (Block() for _ in range(6))
        last = torch.nn.LayerNorm(64), torch.nn.Linear(64, 100)
        super().__init__(torch.nn.Embedding(100, 64), *blocks, *last)


if model == "gpt":
    net = GPT().to(device)
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    inputs, labels = (torch.randint(0, 100, (batch, size)).to(device) for _ in range(2))
else:
    import torchvision
    net = getattr(torchvision.models, model)(weights=None).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.001, momentum=0.9)
    inputs = torch.randn(batch, 3, size, size).to(device)
    labels = torch.randint(0, 1000, (batch,)).to(device)
if count:
    torch.distributed.init_process_group("hccl" if device == "npu" else "gloo")
    net = torch.nn.parallel.DistributedDataParallel(net)
for _ in range(count) if count else sys.stdin:
    start = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    found = net(inputs)
    loss = functional.cross_entropy(found.flatten(0, -2), labels.flatten())
    loss.backward()
    optimizer.step()
    loss.item()
    if rank == 0:
        print(time.perf_counter() - start[0], time.process_time() - start[1], flush=True)
if count:
    torch.distributed.destroy_process_group()
"""
START = "import torch; torch.ones(1, device='{}')"
EMULATE = [sys.executable, "-m", "migrator", "emulate", "--"]
# The plain side is torch alone: otherwise it would load torch_npu as well.
PLAIN = {
    **os.environ,
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "CUDA_VISIBLE_DEVICES": "",
    # torchvision beside another build of torch than its own
    "PYTHONPATH": str(Path(__file__).parents[1] / "tests" / "samples" / "shim"),
}


class Side:
    """One of the two processes."""

    def __init__(self, prefix: list[str], env: dict[str, str], device: str, arguments: list[str]):
        command = [*prefix, "python" if prefix else sys.executable, "-c", PROGRAM, device, *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)

    def step(self) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a program of the benchmark has failed")
        clock, processor = map(float, line.split())
        return clock, processor

    def end(self) -> None:
        self.process.communicate(timeout=60)


def start(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    begin = time.perf_counter(), processor_time()
    subprocess.run(command, env=env, check=True)
    return time.perf_counter() - begin[0], processor_time() - begin[1]


def of_ranks(
    ranks: int, program: str, prefix: list[str], env: dict[str, str], device: str, arguments: list[str]
) -> list[tuple[float, float]]:
    """The steps of rank 0, without the first two."""
    launch = [
        "torch.distributed.run",
        "--standalone",
        f"--nproc_per_node={ranks}",
        program,
        device,
        *arguments,
    ]
    command = [*prefix, "python" if prefix else sys.executable, "-m", *launch]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return [
        (float(clock), float(processor)) for clock, processor in map(str.split, done.stdout.splitlines())
    ][2:]


def processor_time() -> float:
    """Seconds of the processor that all ended processes have had, with those that they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(what: str, cpu: list[float], npu: list[float]) -> None:
    for name, choose in (("fastest", min), ("median", median)):
        one, other = choose(cpu), choose(npu)
        print(f"{what:<36}{name:<8} cpu {one:7.3f} s   emulated npu {other:7.3f} s   ratio {other / one:.2f}")


def show_both(what: str, runs: list[list[tuple[float, float]]]) -> None:
    for i, kind in enumerate(("", ", processor")):
        cpu, npu = ([run[side][i] for run in runs] for side in range(2))
        show(f"{what}{kind}", cpu, npu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet50", help="of torchvision.models")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--ranks", type=int, default=0)
    args = parser.parse_args()
    arguments = [args.model, str(args.batch), str(args.size), str(args.threads)]
    if args.ranks:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(PROGRAM)
            program.flush()
            rest = (args.ranks, program.name)
            arguments.append(str(args.steps + 2))
            runs = [
                [
                    *zip(
                        of_ranks(*rest, [], PLAIN, "cpu", arguments),
                        of_ranks(*rest, EMULATE, dict(os.environ), "npu", arguments),
                    )
                ]
                for _ in range(3)
            ]
        show_both(f"{args.model} step of {args.ranks} ranks", [[*pair] for run in runs for pair in run])
        return

    commands = (
        ([sys.executable, "-c", START.format("cpu")], PLAIN),
        ([*EMULATE, "python", "-c", START.format("npu")], dict(os.environ)),
    )
    for command, env in commands:  # the first one builds the libraries, and fills the disk's cache
        start(command, env)
    starts = [[start(command, env) for command, env in commands] for _ in range(3)]
    show_both("start", starts)

    arguments.append("0")
    sides = Side([], PLAIN, "cpu", arguments), Side(EMULATE, dict(os.environ), "npu", arguments)
    for side in sides:
        for _ in range(2):
            side.step()
    steps = [[side.step() for side in sides] for _ in range(args.steps)]
    show_both(f"{args.model} step", steps)
    for side in sides:
        side.end()


if __name__ == "__main__":
    main()
