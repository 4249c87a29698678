"""api_db/composed.csv: APIs that are Python code, and the aten operators that they come to on an NPU.

    npumigrate emulate --report DIR -- python tools/composed.py

Each program of ``by_hand/composed.csv`` is run with the real torch_npu, on an emulated NPU. The operators are
those that reach the device, forward and backward; whether they have kernels is in kernels.csv, by version.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from migrator.api_support import tables
from migrator.data_folders import data_folder


def main(out: Path) -> int:
    """Run the programs and write the table; 1 where one fails, which leaves no row."""
    import npumigrate_emulator.compute as emulator
    import torch
    import torch_npu

    with open(data_folder("api_db") / "by_hand" / "composed.csv", encoding="utf-8", newline="") as file:
        programs = [(row["api"], row["program"]) for row in csv.DictReader(file)]
    source = f"torch {torch.__version__.partition('+')[0]} with torch_npu {torch_npu.__version__} executed"
    rows: list[Sequence[str]] = []
    for api, program in programs:
        names = _names(torch)
        before = emulator.work()["0"]["operators"]
        try:
            exec(program, names)
        except Exception as error:
            print(f"{api}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        ran = {
            name.partition("::")[2].partition(".")[0]
            for name, calls in emulator.work()["0"]["operators"].items()
            if calls > before.get(name, 0)
        }
        rows.append((api, " ".join(sorted(ran)), source))
    tables.write_in(out, "composed", rows)
    return int(len(rows) < len(programs))


def _names(torch: Any) -> dict[str, Any]:
    """What the programs speak of: ``x`` is 4 by 4, ``seq`` 2 sequences of 3 steps with 8 features."""
    torch.manual_seed(0)
    x = torch.randn(4, 4).npu().requires_grad_()
    net = torch.nn.Linear(4, 4).npu()

    def step(optimizer: Any, *closure: Any) -> None:
        net(x).sum().backward()
        optimizer.step(*closure)

    def group() -> None:
        distributed = torch.distributed
        if not distributed.is_initialized():
            distributed.init_process_group("hccl", store=distributed.HashStore(), rank=0, world_size=1)

    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "x": x,
        "net": net,
        "seq": torch.randn(2, 3, 8).npu().requires_grad_(),
        "same": lambda y: y,
        "twice": lambda y: 2 * y,
        "step": step,
        "group": group,
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else data_folder("api_db")))
