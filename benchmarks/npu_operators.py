"""Operator check: torch's own samples (OpInfo), forward and backward, on the emulated NPU against the CPU.

npumigrate emulate --cpu-random -- python benchmarks/npu_operators.py [--samples 5] [--write FILE]
(needs expecttest, which torch's samples import; FILE is docs/emulator_operators.md, its Chinese is beside it)

Every operator that torch has samples for is checked. Exit code 1: an operator differs and REASONS does not
say why, or REASONS names one that does not differ.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Optional

import torch
import torch_npu
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

# Samples are of the first of these that an operator has for the CPU; of float32 where it claims none.
DTYPES = (torch.float32, torch.complex64, torch.int64, torch.float8_e4m3fn)
# Their results are whatever the memory held: only sizes and dtypes can be compared.
NOT_INITIALIZED = frozenset(
    "empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split()
)
# Its indices are on the host, whatever the device.
INDICES_ON_HOST = frozenset(("tensor_split",))
# torch_npu's own text where it refuses a memory format such as channels_last.
OTHER_FORMAT = "Only contiguous_format or preserve_format is supported"
# CANN's where it refuses a product of complex numbers, as in the derivative of linalg.eig.
COMPLEX_PRODUCT = re.compile(r"aclnn(Mm|BatchMatMul) failed, error code is 161002")

# Why an operator differs, or cannot be compared; patterns as of file names.
REASONS = {
    "jiterator_*": "is for CUDA alone",
    "torch.ops.aten._flash_attention_forward": "is for GPUs alone; the CPU has no such kernel",
    "torch.ops.aten._efficient_attention_forward": "is for GPUs alone; the CPU has no such kernel",
    "sparse.*": "torch_npu refuses sparse products",
    "linalg.lstsq*": "off the CPU torch takes the driver gels, which is not for matrices without full rank",
}

PAGE = """\
# Operator check

    npumigrate emulate --cpu-random -- \\
        python benchmarks/npu_operators.py --samples {samples} --write docs/emulator_operators.md

wrote this page, with torch {torch} and torch_npu {torch_npu}. Each operator that torch has samples for
(OpInfo) runs on the emulated NPU and on the CPU: up to {samples} samples of each, of float32 or the first
dtype that it has, with the same random numbers. All results, and the derivatives of all of them by all
inputs, are compared; results whose memory is not initialized only by size and dtype.

| | agree with the CPU | of |
| --- | --- | --- |"""

AGREEMENT = """\
Those that do not, and why:

| operator | where | why |
| --- | --- | --- |"""

BY_INTENTION = """\
What torch_npu itself does otherwise on purpose, here as on an NPU. These operators count as
agreement where the rest of their samples, or their values in float32, agree:
"""

CHINESE = {
    PAGE: """\
# 算子检查

[English](emulator_operators.md)

    npumigrate emulate --cpu-random -- \\
        python benchmarks/npu_operators.py --samples {samples} --write docs/emulator_operators.md

这条命令用 torch {torch} 和 torch_npu {torch_npu} 写出了本页。
torch 为其提供样本（OpInfo）的每个算子都在模拟 NPU 和 CPU 上运行：每个最多 {samples} 个样本，
dtype 为 float32 或它支持的第一个 dtype，随机数相同。比较所有结果，以及所有结果对所有输入的导数；
内存没有初始化的结果只比较大小和 dtype。

| | 与 CPU 一致 | 总数 |
| --- | --- | --- |""",
    AGREEMENT: """\
不一致的算子及其原因：

| 算子 | 位置 | 原因 |
| --- | --- | --- |""",
    BY_INTENTION: """\
以下是 torch_npu 自己有意采取的不同做法，在这里与在 NPU 上相同。
如果这些算子的其余样本一致，或者它们以 float32 表示的值一致，就视为一致：
""",
    "forward": "前向",
    "backward": "反向",
    " and ": "和",
    ", ": "、",
    "- {way}: {names}": "- {way}：{names}",
    "is for CUDA alone": "只用于 CUDA",
    "is for GPUs alone; the CPU has no such kernel": "只用于 GPU；CPU 没有这个核函数",
    "torch_npu refuses sparse products": "torch_npu 拒绝稀疏张量的乘积",
    "off the CPU torch takes the driver gels, which is not for matrices without full rank": (
        "不在 CPU 上时，torch 使用 LAPACK 的驱动 gels，它不适用于不满秩的矩阵"
    ),
    "casts to float32 where float64 is asked for": "要求 float64 时转换为 float32",
    "refuses memory formats other than contiguous": "拒绝 contiguous 以外的内存格式",
    "refuses products of complex numbers, here in the derivative": "拒绝复数的乘积，这里是在导数中",
}


@dataclass
class Outcome:
    """How the samples of one operator went; empty texts are agreement, None is nothing to compare."""

    name: str
    forward: Optional[str] = None
    backward: Optional[str] = None
    on_cpu: str = ""  # why no sample runs there
    of_torch_npu: set[str] = field(default_factory=set)  # what torch_npu does otherwise, by intention


def copy_to(device: str, values: Any) -> Any:
    """Copy arguments to a device: tensors with strides and all of their storage, and names of devices."""

    def copy(value: Any) -> Any:
        if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
            return torch.device(device)
        if not isinstance(value, torch.Tensor):
            return value
        if value.layout != torch.strided or value.is_conj() or value.is_neg():
            copied = value.detach().clone().to(device)
        else:
            elements = value.untyped_storage().nbytes() // value.element_size()
            storage = value.detach().as_strided((elements,), (1,), 0).clone().to(device)
            copied = storage.as_strided(value.size(), value.stride(), value.storage_offset())
        return copied.requires_grad_(value.requires_grad)

    return tree_map(copy, values)


def compare(npu: Any, cpu: Any, outcome: Outcome, values: bool = True) -> None:
    """Raise AssertionError unless the results are equal, and on the NPU."""
    ours, theirs = tree_leaves(npu), tree_leaves(cpu)
    assert len(ours) == len(theirs), f"{len(ours)} results, not {len(theirs)}"
    for one, other in zip(ours, theirs):
        if not isinstance(other, torch.Tensor):
            assert type(one) is type(other), f"{type(one)}, not {type(other)}"
            if isinstance(other, (bool, int, float, complex)):
                torch.testing.assert_close(one, other, equal_nan=True)
            continue
        assert one.device.type == "npu", f"a result on {one.device}"
        one, other = one.detach().cpu(), other.detach()
        if (one.dtype, other.dtype) == (torch.float32, torch.float64):
            outcome.of_torch_npu.add("casts to float32 where float64 is asked for")
            other = other.float()
        if not values:
            one, other = torch.zeros_like(one), torch.zeros_like(other)
        elif one.is_floating_point() and one.itemsize == 1:
            assert one.dtype == other.dtype
            one, other = one.float(), other.float()
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)


def differentiable(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor) and value.requires_grad]


def gradients(results: Any, inputs: Any) -> Sequence[Optional[torch.Tensor]]:
    """The derivatives of all results, with random weights, by all inputs; none if nothing can be derived."""
    outputs, leaves = differentiable(results), differentiable(inputs)
    if not (outputs and leaves):
        return ()
    torch.manual_seed(1)
    weights = [torch.randn(output.shape).to(output) for output in outputs]
    return torch.autograd.grad(outputs, leaves, weights, allow_unused=True)


def run(operator: Any, sample: Any, device: str) -> tuple[Any, Any]:
    """Return the results, with what they are to be derived for, and the inputs."""
    inputs = copy_to(device, (sample.input, sample.args, sample.kwargs))
    if operator.name in INDICES_ON_HOST:
        inputs = (inputs[0], sample.args, inputs[2])
    torch.manual_seed(0)
    data, args, named = inputs
    makes_first = not any(isinstance(value, (torch.Tensor, torch.device)) for value in tree_leaves(inputs))
    with torch.device(device) if makes_first else nullcontext():
        return operator(data, *args, **named), inputs


def check(operator: Any, sample: Any, outcome: Outcome) -> None:
    """Run one sample on both, and note it."""
    derived = sample.output_process_fn_grad or (lambda result: result)
    try:
        cpu, inputs = run(operator, sample, "cpu")
    except Exception as error:
        outcome.on_cpu = outcome.on_cpu or line(error)
        return
    try:
        expected = gradients(derived(cpu), inputs)
    except Exception:  # this sample has no derivative
        expected = ()
    has_derivative = any(gradient is not None for gradient in expected)
    try:
        npu, inputs = run(operator, sample, "npu")
        compare(npu, cpu, outcome, operator.name not in NOT_INITIALIZED)
        outcome.forward = outcome.forward or ""
    except Exception as error:
        if OTHER_FORMAT in str(error):
            outcome.of_torch_npu.add("refuses memory formats other than contiguous")
            return
        outcome.forward = outcome.forward or line(error)
        if has_derivative:
            outcome.backward = outcome.backward or "has no right result to derive"
        return
    if has_derivative:
        try:
            compare(gradients(derived(npu), inputs), expected, outcome)
            outcome.backward = outcome.backward or ""
        except Exception as error:
            if COMPLEX_PRODUCT.search(str(error)) and "DT_COMPLEX64" in str(error):
                outcome.of_torch_npu.add("refuses products of complex numbers, here in the derivative")
                outcome.backward = outcome.backward or ""
                return
            outcome.backward = outcome.backward or line(error)


def line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


def check_all(samples: int) -> list[Outcome]:
    """Check every operator with that many of its samples."""
    outcomes = []
    for operator in op_db:
        outcome = Outcome(f"{operator.name} {operator.variant_test_name}".strip())
        dtype = next((dtype for dtype in DTYPES if dtype in operator.dtypes), torch.float32)
        derived = operator.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        torch.manual_seed(0)
        try:
            for sample, _ in zip(operator.sample_inputs("cpu", dtype, requires_grad=derived), range(samples)):
                check(operator, sample, outcome)
        except Exception as error:  # no samples without a GPU
            outcome.on_cpu = outcome.on_cpu or line(error)
        outcomes.append(outcome)
    return outcomes


def reason(name: str) -> str:
    return next((why for pattern, why in REASONS.items() if fnmatchcase(name, pattern)), "")


def page(outcomes: Sequence[Outcome], samples: int, words: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the summary as a page of the documentation; ``words`` has its texts in another language."""

    def said(text: str) -> str:
        return words[text] if words else text

    backward = [outcome for outcome in outcomes if outcome.backward is not None]
    rows = [
        (outcome.name, said(" and ").join(map(said, directions)), reason(outcome.name))
        for outcome in outcomes
        if (directions := [way for way in ("forward", "backward") if differs(outcome, way)])
    ]
    by_intention = sorted(
        (what, outcome.name) for outcome in outcomes for what in outcome.of_torch_npu if outcome.forward == ""
    )
    lines = [
        said(PAGE).format(torch=torch.__version__, torch_npu=torch_npu.__version__, samples=samples),
        f"| {said('forward')} | {sum(outcome.forward == '' for outcome in outcomes)} | {len(outcomes)} |",
        f"| {said('backward')} | {sum(outcome.backward == '' for outcome in backward)} | {len(backward)} |",
        "",
        said(AGREEMENT),
        *(f"| `{name}` | {directions} | {said(why) if why else ''} |" for name, directions, why in rows),
        "",
        said(BY_INTENTION),
    ]
    for way in sorted({what for what, _ in by_intention}):
        names = said(", ").join(f"`{name}`" for what, name in by_intention if what == way)
        lines.append(said("- {way}: {names}").format(way=said(way), names=names))
    return "\n".join([*lines, ""])


def differs(outcome: Outcome, direction: str) -> bool:
    error = getattr(outcome, direction)
    return bool(error) or (error is None and direction == "forward")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=5, help="of each operator")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="write the summary as a page of Markdown, and its Chinese beside it",
    )
    options = parser.parse_args()
    outcomes = check_all(options.samples)
    text = page(outcomes, options.samples)
    print(text)
    differing = {o.name for o in outcomes if differs(o, "forward") or differs(o, "backward")}
    unexplained = {name for name in differing if not reason(name)}
    for outcome in outcomes:
        if outcome.name in unexplained:
            print(f"{outcome.name}: {outcome.forward or outcome.backward or outcome.on_cpu}", file=sys.stderr)
    superfluous = [
        pattern for pattern in REASONS if not any(fnmatchcase(name, pattern) for name in differing)
    ]
    for pattern in superfluous:
        print(f"{pattern}: has a reason, but agrees", file=sys.stderr)
    if unexplained or superfluous:
        sys.exit(1)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
        chinese = page(outcomes, options.samples, CHINESE)
        options.write.with_suffix(".zh.md").write_text(chinese, encoding="utf-8")


if __name__ == "__main__":
    main()
