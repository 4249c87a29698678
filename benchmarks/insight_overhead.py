"""What it costs to record a run for insight: steps of a program on emulated NPUs, recorded and not.

python -m benchmarks.insight_overhead [--steps 15]

Two models take their steps in turns with and without `--report`, each in one thread, so that a busy machine
slows both. The processor's time is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

# One step for each line on standard input; on standard output the seconds of its processor.
PROGRAM = """
import sys, time, torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
if sys.argv[1] == "resnet18":
    from torchvision.models import resnet18
    net = resnet18(num_classes=10).to("npu")
    data = torch.randn(16, 3, 32, 32).to("npu")
else:
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    net = nn.Sequential(layers, nn.Flatten(), nn.Linear(32 * 128, 10)).to("npu")
    data = torch.randn(8, 32, 128).to("npu")
labels = torch.randint(0, 10, data.shape[:1]).to("npu")
optimizer = torch.optim.Adam(net.parameters(), 0.001)
for _ in sys.stdin:
    start = time.process_time()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(data), labels)
    loss.backward()
    optimizer.step()
    loss.item()
    print(time.process_time() - start, flush=True)
"""
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    # torchvision beside another build of torch than its own
    "PYTHONPATH": str(Path(__file__).parents[1] / "tests" / "samples" / "shim"),
}


def started(folder: Path, model: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "migrator", "emulate", *options, "--", "python", "program.py", model]
    pipe = subprocess.PIPE
    env = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((os.getcwd(), ENVIRONMENT["PYTHONPATH"]))}
    return subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, text=True)


def step(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(file=process.stdin, flush=True)
    return float(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        for model in ("resnet18", "transformer"):
            sides = started(folder, model), started(folder, model, "--report", str(folder / model))
            for side in sides:
                for _ in range(3):
                    step(side)
            times = [[step(side) for side in sides] for _ in range(args.steps)]
            plain, recorded = zip(*times)
            for what, choose in (("fastest", min), ("median", median)):
                one, other = choose(plain), choose(recorded)
                print(f"{model:<12} {what:<8} {one:7.4f} s, recorded {other:7.4f} s: {other / one:.2f} times")
            for side in sides:
                side.communicate(timeout=120)


if __name__ == "__main__":
    main()
