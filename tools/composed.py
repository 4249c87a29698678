"""api_db/composed.csv: the aten operators that APIs come to on an NPU.

    npumigrate emulate --report DIR -- python tools/composed.py

Each program of ``by_hand/composed.csv``, torch's samples of operators (OpInfo), modules and optimizers run
with the real torch_npu, on an emulated NPU. The operators are those that reach the device; whether they have
kernels is in kernels.csv and native_functions.csv, by version. torch's samples import expecttest.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from migrator.data_folders import data_folder
from tools.releases import writing

_SAMPLES = 6
Work = Callable[[], Any]


def main(out: Path) -> int:
    """Run the programs and write the table; 1 where one of those by hand fails, which leaves no row."""
    import torch
    import torch_npu

    warnings.simplefilter("ignore")
    with open(data_folder("api_db") / "by_hand" / "composed.csv", encoding="utf-8", newline="") as file:
        programs = [(row["api"], row["program"]) for row in csv.DictReader(file)]
    source = f"torch {torch.__version__.partition('+')[0]} with torch_npu {torch_npu.__version__} executed"
    rows: dict[str, Sequence[str]] = {}
    failed = 0
    for api, program in programs:
        names = _names(torch)
        try:
            # Forward and backward: the program says itself what it derives.
            rows[api] = (" ".join(sorted(_reached(lambda: exec(program, names))[0])), "", "")  # noqa: B023
        except Exception as error:
            failed += 1
            print(f"{api}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    for api, works in [*_operators(torch), *_modules(torch), *_optimizers(torch)]:
        seen = list(_seen(works))
        if api in rows or not seen:
            continue
        forward, backward = zip(*seen)
        always = set(forward[0]).intersection(*forward)
        derived = set().union(*backward)
        sometimes = set().union(*forward) - always
        rows[api] = " ".join(sorted(always)), " ".join(sorted(sometimes)), " ".join(sorted(derived))
    writing.write_in(out, "composed", [(api, *cells, source) for api, cells in rows.items()])
    return int(failed > 0)


def _seen(works: Iterator[Work]) -> Iterator[tuple[set[str], set[str]]]:
    """The operators of each sample that runs, forward and backward."""
    for work in works:
        try:
            forward, result = _reached(work)
        except Exception:  # what a sample asks for is not what every device can
            continue
        yield forward, _derived(result)


def _derived(result: Any) -> set[str]:
    import torch
    from torch.utils._pytree import tree_leaves

    outputs = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
    if not outputs:
        return set()
    weights = [torch.ones_like(output) for output in outputs]
    try:
        return _reached(lambda: torch.autograd.backward(outputs, weights))[0]
    except Exception:
        return set()


def _reached(work: Work) -> tuple[set[str], Any]:
    """The aten operators that reach the device during some work, and its result."""
    import npumigrate_emulator.compute as emulator

    before = emulator.work()["0"]["operators"]
    result = work()
    ran = {
        name.partition("::")[2]
        for name, calls in emulator.work()["0"]["operators"].items()
        if calls > before.get(name, 0)
    }
    return ran, result


def _to_npu(values: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_map

    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            return value.detach().clone().npu().requires_grad_(value.requires_grad)
        is_device = isinstance(value, torch.device) or value == "cpu" if isinstance(value, str) else False
        return torch.device("npu") if is_device else value

    return tree_map(copied, values)


def _operators(torch: Any) -> Iterator[tuple[str, Iterator[Work]]]:
    """torch's samples of its operators: the function, the method and the method that works in place."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        if operator.variant_test_name:
            continue
        spelled = [operator.name, *(alias.name for alias in operator.aliases)]
        for name in spelled:
            if not name.startswith(("_", "ops.", "torch.ops", "jiterator")):
                yield f"torch.{name}", _of_samples(torch, operator, operator.op)
        for method in (operator.method_variant, operator.inplace_variant):
            if method is not None and getattr(method, "__name__", "_").rstrip("_"):
                yield f"torch.Tensor.{method.__name__}", _of_samples(torch, operator, method)


def _of_samples(torch: Any, operator: Any, function: Any) -> Iterator[Work]:
    kinds = (torch.float32, torch.complex64, torch.int64, torch.bool)
    dtype = next((kind for kind in kinds if kind in operator.dtypes), torch.float32)
    derived = operator.supports_autograd and dtype.is_floating_point
    in_place = function is operator.inplace_variant and function is not None
    torch.manual_seed(0)
    try:
        samples = list(zip(operator.sample_inputs("cpu", dtype, requires_grad=derived), range(_SAMPLES)))
    except Exception:  # no samples without a GPU
        return
    for sample, _ in samples:
        data, args, named = _to_npu((sample.input, sample.args, sample.kwargs))
        if in_place:
            data = data.clone() if isinstance(data, torch.Tensor) else data
        has_tensor = isinstance(data, (torch.Tensor, list, tuple))

        def work(data: Any = data, args: Any = args, named: Any = named, known: bool = has_tensor) -> Any:
            with nullcontext() if known else torch.device("npu"):
                return function(data, *args, **named)

        yield work


def _modules(torch: Any) -> Iterator[tuple[str, Iterator[Work]]]:
    """torch's samples of its modules."""
    from torch.testing._internal.common_modules import module_db

    for module in module_db:
        home = module.module_cls.__module__
        if home.startswith("torch.nn.modules."):
            yield f"torch.nn.{module.module_cls.__name__}", _of_module(torch, module)


def _of_module(torch: Any, module: Any) -> Iterator[Work]:
    try:
        inputs = list(module.module_inputs_func(module, "cpu", torch.float32, True, True))[:_SAMPLES]
    except Exception:
        return
    for sample in inputs:
        built = sample.constructor_input
        if sample.forward_input is None:
            continue
        made = module.module_cls(*built.args, **built.kwargs).npu()
        args, named = _to_npu((sample.forward_input.args, sample.forward_input.kwargs))

        def work(made: Any = made, args: Any = args, named: Any = named) -> Any:
            return made(*args, **named)

        yield work


def _optimizers(torch: Any) -> Iterator[tuple[str, Iterator[Work]]]:
    """A step of each optimizer, as torch's samples set it up."""
    from torch.testing._internal.common_optimizers import optim_db

    for optimizer in optim_db:
        yield f"torch.optim.{optimizer.optim_cls.__name__}", _of_optimizer(torch, optimizer)


def _of_optimizer(torch: Any, optimizer: Any) -> Iterator[Work]:
    for sample in optimizer.optim_inputs_func(device="npu")[:_SAMPLES]:
        weight = torch.randn(4, 4).npu().requires_grad_()
        weight.grad = torch.ones(4, 4).npu()

        def work(weight: Any = weight, named: Any = sample.kwargs) -> None:
            optimizer.optim_cls([weight], **named).step(lambda: weight.sum())

        yield work


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
