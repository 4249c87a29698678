"""Operator check: torch's own samples (OpInfo), forward and backward, on the emulated NPU against the CPU.

npumigrate emulate -- python benchmarks/npu_operators.py
(needs expecttest, which torch's samples import)
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES = 3  # of each operator
# Their results are random or not initialized.
RANDOM = set(
    "bernoulli cauchy dropout empty exponential geometric log_normal multinomial normal".split()
) | set("poisson rand rrelu uniform".split())


def on_npu(values: Any) -> Any:
    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().to("npu").requires_grad_(value.requires_grad)

    return tree_map(move, values)


def tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def assert_close(npu: torch.Tensor, cpu: torch.Tensor) -> None:
    torch.testing.assert_close(npu.detach().cpu(), cpu.detach(), rtol=1e-3, atol=1e-4, equal_nan=True)


def first_gradient(result: Any, data: Any) -> torch.Tensor | None:
    """The derivative of the first result by the first input; None where there is none."""
    first = tensors(result)[:1]
    wanted = isinstance(data, torch.Tensor) and data.requires_grad
    if not (wanted and first and first[0].requires_grad and first[0].is_floating_point()):
        return None
    return torch.autograd.grad(first[0].sum(), data, allow_unused=True)[0]


def check(operator: Any, sample: Any) -> dict[str, str]:
    """Run one sample; return for "forward" and "backward", where they exist, the error or an empty text."""
    try:
        cpu = operator(sample.input, *sample.args, **sample.kwargs)
        gradient = first_gradient(cpu, sample.input)
    except Exception:  # for a GPU only, or without a derivative: nothing to compare with
        return {}
    data, args, kwargs = on_npu((sample.input, sample.args, sample.kwargs))
    try:
        npu = operator(data, *args, **kwargs)
        for one, other in zip(tensors(npu), tensors(cpu)):
            assert_close(one, other)
    except Exception as error:
        return {"forward": f"{type(error).__name__}: {error}"}
    if gradient is None:
        return {"forward": ""}
    try:
        same = first_gradient(npu, data)
        assert same is not None
        assert_close(same, gradient)
    except Exception as error:
        return {"forward": "", "backward": f"{type(error).__name__}: {error}"}
    return {"forward": "", "backward": ""}


def main() -> None:
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, bool]] = Counter()
    for operator in op_db:
        if torch.float32 not in operator.dtypes or any(name in operator.name for name in RANDOM):
            counts["left out", True] += 1
            continue
        results: dict[str, str] = {}
        samples = operator.sample_inputs("cpu", torch.float32, requires_grad=operator.supports_autograd)
        for sample, _ in zip(samples, range(SAMPLES)):
            for direction, error in check(operator, sample).items():
                results[direction] = results.get(direction) or error
        for direction, error in results.items():
            counts[direction, not error] += 1
            if error:
                name = f"{operator.name} {operator.variant_test_name}".strip()
                print(f"{direction} {name}: {' '.join(error.split())[:140]}")
    for direction in ("forward", "backward"):
        right = counts[direction, True]
        print(f"{direction}: {right} of {right + counts[direction, False]} operators agree with the CPU")
    print(f"left out (random, or without float32): {counts['left out', True]}")


if __name__ == "__main__":
    main()
