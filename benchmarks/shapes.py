"""What projects of a costly shape take, as a ratio to the same files without what makes them costly.

    python -m benchmarks.shapes [--shape programs …] [--entries 40] [--helpers 60] [--kernels 400]

Prints for each shape the processor time of a plain project, that of the costly one, and their ratio.
``horovod``: many programs on Horovod that import the same helpers; plain without Horovod. ``programs``: the
same, trained with torch.distributed; plain as modules that nobody starts. ``operators``: CUDA sources, and
what binds them for Python; plain as C++ of the same bytes that binds nothing. Two are compared by line with a
tenth of themselves, as no work may grow faster than the input: ``starts``, 1,300 files with 60 programs and
scripts that start them; ``imports``, 3,000 files, each of which imports others down to the last one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.whole_runs import HERE, Cost, commands, cost

_HOROVOD = """import horovod.torch as hvd
import torch
from helpers import {helpers}

hvd.init()
torch.cuda.set_device(hvd.local_rank())
model = torch.nn.Linear(4, 4).cuda()
"""
_DISTRIBUTED = """import argparse
import torch
from helpers import {helpers}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    options = parser.parse_args()
    torch.distributed.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda(options.local_rank))
    helper0.step0(model, {{"image": torch.rand(4)}}, torch.rand(4))


if __name__ == "__main__":
    main()
"""
_FUNCTION = """

def step{number}(model, batch, target):
    loss = torch.nn.functional.cross_entropy(model(batch["image"].cuda()), target.cuda())
    if torch.cuda.is_available() and loss.item() > {number}:
        torch.cuda.synchronize()
    return {{"loss": float(loss), "memory": torch.cuda.max_memory_allocated()}}
"""
_USES = """

def setup{number}(args, rank, world_size):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.distributed.all_reduce(torch.zeros(1).cuda())


def main{number}(args):
    setup{number}(args, args.rank, args.world_size)
"""
_STARTED = """import argparse
import torch
from library import {modules}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--option{number}", type=int)
    options = parser.parse_args()
    model = torch.nn.Linear(4, 4).to(options.device)
    module0.setup0(options, options.rank, 4)
    torch.nn.parallel.DistributedDataParallel(model)(torch.rand(4)).sum().backward()


if __name__ == "__main__":
    main()
"""
_KERNEL = """
template <typename scalar_t>
__global__ void scale{number}_kernel(const scalar_t* in, scalar_t* out, float factor, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && factor != 0.f) out[i] = static_cast<scalar_t>(in[i] * factor);  // "scaled"
}}

torch::Tensor scale{number}(torch::Tensor in, double factor) {{
  auto out = torch::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "scale", [&] {{
    scale{number}_kernel<scalar_t><<<in.numel() / 256 + 1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), float(factor), int(in.numel()));
  }});
  return out;
}}
"""
_BOUND = """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
  m.def("scale{number}", &scale{number}, "scales a tensor");
}}
"""
_SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="ops",
    ext_modules=[CUDAExtension("ops._C", {sources})],
    cmdclass={{"build_ext": BuildExtension}},
)
"""
# What makes CUDA of C++, and words of the same length that do not.
_PLAIN_WORDS = {
    "__global__": "__local___",
    "<<<": "((<",
    ">>>": ">))",
    "cuda": "gpux",
    "CUDA": "GPUX",
    "PYBIND11_MODULE": "OTHERS11_MODULE",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--shape", action="append", choices=(*SHAPES, *GROWING), help="only this one (may be repeated)"
    )
    parser.add_argument("--entries", type=int, default=40, help="programs")
    parser.add_argument("--helpers", type=int, default=60, help="files that each of them imports")
    parser.add_argument("--kernels", type=int, default=400, help="CUDA sources, of ten operators each")
    chosen = parser.parse_args()
    for shape in chosen.shape or (*SHAPES, *GROWING):
        if shape in SHAPES:
            (plain, _), (whole, _) = (_made(SHAPES[shape], chosen, costly) for costly in (False, True))
            ratio = whole.seconds / plain.seconds
            print(
                f"{shape}: plain {plain.seconds:.1f} s, so {whole.seconds:.1f} s; {ratio:.1f} times (aim: 3)"
            )
            continue
        (small, few), (large, many) = (_made(GROWING[shape], chosen, big) for big in (False, True))
        ratio = (large.seconds / many) / (small.seconds / few)
        about = f"{few:,} lines {small.seconds:.1f} s, {many:,} lines {large.seconds:.1f} s"
        print(f"{shape}: {about}; {ratio:.2f} times a line (aim: 1.2), {large.memory} MiB (aim: 400)")


def _made(write: Callable[..., None], chosen: argparse.Namespace, costly: bool) -> tuple[Cost, int]:
    """What a migration of such a project takes, and how many lines it has."""
    with TemporaryDirectory() as folder:
        write(Path(folder), chosen, costly)
        lines = sum(path.read_bytes().count(b"\n") for path in Path(folder).rglob("*.py"))
        return cost(HERE, commands(Path(folder))["migrate"]), lines


def _horovod(folder: Path, chosen: argparse.Namespace, costly: bool) -> None:
    program = _HOROVOD.format(helpers=_helpers(folder, chosen.helpers))
    if not costly:
        program = program.partition("\n")[2].replace("hvd.init()\n", "").replace("hvd.local_rank()", "0")
    _programs(folder, chosen.entries, program)


def _started(folder: Path, chosen: argparse.Namespace, costly: bool) -> None:
    program = _DISTRIBUTED.format(helpers=_helpers(folder, chosen.helpers))
    _programs(folder, chosen.entries, program if costly else program.partition("\n\nif __name__")[0])


def _operators(folder: Path, chosen: argparse.Namespace, costly: bool) -> None:
    sources = {}
    for number in range(chosen.kernels):
        body = "".join(_KERNEL.format(number=10 * number + each) for each in range(10))
        sources[f"op{number}.cu"] = f"#include <torch/extension.h>\n{body}{_BOUND.format(number=10 * number)}"
    sources["setup.py"] = _SETUP.format(sources=sorted(sources))
    for name, text in sources.items():
        for word, other in _PLAIN_WORDS.items() if not costly else ():
            text = text.replace(word, other)
        (folder / (name if costly else name.replace(".cu", ".cpp"))).write_text(text)


def _starts(folder: Path, chosen: argparse.Namespace, large: bool) -> None:
    """Programs that start ranks through a library which they all import, and the scripts that start them."""
    files, programs = (1240, 60) if large else (124, 6)
    _packages(folder, files, deep=False)
    for each in range(programs):
        first = each * files // programs
        names = ", ".join(f"module{(first + number) % files}" for number in range(20))
        text = _STARTED.format(modules=names, number=each)
        (folder / f"train{each}.py").write_text(text)
        options = " ".join(f"--option{number} {number}" for number in range(10))
        (folder / f"train{each}.sh").write_text(f"torchrun train{each}.py --device cuda {options}\n")


def _imports(folder: Path, chosen: argparse.Namespace, large: bool) -> None:
    _packages(folder, 3000 if large else 300, deep=True)
    text = _STARTED.format(modules="module0", number=0)
    for each in range(30 if large else 3):
        (folder / f"train{each}.py").write_text(text)


def _packages(folder: Path, number: int, deep: bool) -> None:
    """Write modules that import two others each: the next ones, or some that are far away."""
    package = folder / "library"
    package.mkdir()
    (package / "__init__.py").write_text("")
    functions = "".join(_FUNCTION.format(number=each) for each in range(4 if deep else 20))
    for each in range(number):
        others = [each + 1, each + 2] if deep else [each * 7 + 1, each * 5 + 3]
        names = ", ".join(f"module{other}" for other in others if other < number)
        above = f"from . import {names}\n" if names else ""
        uses = _USES.format(number=each) if each % 10 == 0 else ""
        (package / f"module{each}.py").write_text(f"import torch\n{above}{functions}{uses}")


SHAPES = {"horovod": _horovod, "programs": _started, "operators": _operators}
GROWING = {"starts": _starts, "imports": _imports}


def _helpers(folder: Path, number: int) -> str:
    """Write a package of modules, and give the names of them."""
    package = folder / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    body = "import torch\n" + "".join(_FUNCTION.format(number=each) for each in range(30))
    for each in range(number):
        (package / f"helper{each}.py").write_text(body)
    return ", ".join(f"helper{each}" for each in range(number))


def _programs(folder: Path, number: int, text: str) -> None:
    for each in range(number):
        (folder / f"train{each}.py").write_text(text)


if __name__ == "__main__":
    main()
