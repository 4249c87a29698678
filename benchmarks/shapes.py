"""How long projects of a costly shape take, as a ratio to the same files without what makes them costly.

    python -m benchmarks.shapes [--entries 40] [--helpers 60]

Prints, for many programs on Horovod that import the same helpers, the time of the whole command, that of the
same files without Horovod, and their ratio.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.whole_runs import measured

_HOROVOD = """import horovod.torch as hvd
import torch
from helpers import {helpers}

hvd.init()
torch.cuda.set_device(hvd.local_rank())
model = torch.nn.Linear(4, 4).cuda()
"""
_FUNCTION = """

def step{number}(model, batch, target):
    loss = torch.nn.functional.cross_entropy(model(batch["image"].cuda()), target.cuda())
    if torch.cuda.is_available() and loss.item() > {number}:
        torch.cuda.synchronize()
    return {{"loss": float(loss), "memory": torch.cuda.max_memory_allocated()}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=40, help="programs")
    parser.add_argument("--helpers", type=int, default=60, help="files that each of them imports")
    chosen = parser.parse_args()
    seconds = []
    for with_horovod in (False, True):
        with TemporaryDirectory() as folder:
            _write(Path(folder), chosen.entries, chosen.helpers, with_horovod)
            seconds.append(measured(Path(folder), [])[0])
    plain, horovod = seconds
    print(f"without Horovod: {plain:.1f} s; with it: {horovod:.1f} s; {horovod / plain:.1f} times (aim: 3)")


def _write(folder: Path, entries: int, helpers: int, with_horovod: bool) -> None:
    """Programs in a folder, and a package of helpers beside them."""
    package = folder / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    body = "import torch\n" + "".join(_FUNCTION.format(number=number) for number in range(30))
    for number in range(helpers):
        (package / f"helper{number}.py").write_text(body)
    names = ", ".join(f"helper{number}" for number in range(helpers))
    program = _HOROVOD.format(helpers=names)
    if not with_horovod:
        program = program.partition("\n")[2].replace("hvd.init()\n", "").replace("hvd.local_rank()", "0")
    for number in range(entries):
        (folder / f"train{number}.py").write_text(program)


if __name__ == "__main__":
    main()
