"""What HCCL takes and what it refuses, each at its limit: by torch_npu's own checks, and HCCL's behind them.

HCCL's are in its source (`HcomCheckReduceDataType`) and documents (HcclAllReduce, HcclReduce).
"""

from __future__ import annotations

import json
from typing import Optional

import pytest

from tests.emulator.test_distributed import PROGRAMS, torchrun
from tests.explain import explain_text

DTYPE = ("Unsupported data type", "hccl-unsupported-dtype")
PRODUCT = ("The expected value is float16, float32, int32.", "EI0003")
BITS = ("Cannot use ReduceOp.{} with HCCL", "hccl-unsupported-reduceop")
AVERAGE = ("result type Float can't be cast", "result-type-cannot-be-cast")

# What is asked, and nothing where it runs; else a part of the message, and the entry that explains it.
Limits = dict[str, Optional[tuple[str, str]]]


def reduced(call: str, operation: str, dtype: str) -> str:
    one, two = (f"torch.ones({size}).to(torch.{dtype}).npu()" for size in (1, 2))
    if call == "reduce_scatter_tensor":
        return f"dist.reduce_scatter_tensor({one}, {two}, ReduceOp.{operation})"
    root = "0, " if call == "reduce" else ""
    return f"dist.{call}({two}, {root}ReduceOp.{operation})"


LIMITS: Limits = {}
for call in ("all_reduce", "reduce", "reduce_scatter_tensor"):
    for dtype in ("float32", "float16", "bfloat16", "int8", "int16", "int32", "int64"):
        LIMITS[reduced(call, "SUM", dtype)] = None
        LIMITS[reduced(call, "MAX", dtype)] = None
        LIMITS[reduced(call, "PRODUCT", dtype)] = PRODUCT if dtype in ("int16", "bfloat16") else None
        LIMITS[reduced(call, "AVG", dtype)] = AVERAGE if dtype.startswith("int") else None
    for operation in ("BAND", "BOR", "BXOR"):
        LIMITS[reduced(call, operation, "int32")] = (BITS[0].format(operation), BITS[1])
    for dtype in ("float64", "uint16", "uint32", "uint64", "float8_e4m3fn"):
        LIMITS[reduced(call, "SUM", dtype)] = DTYPE
    # torch_npu casts these to int32, but not for what is scattered
    for dtype in ("bool", "uint8"):
        LIMITS[reduced(call, "SUM", dtype)] = DTYPE if call == "reduce_scatter_tensor" else None
# torch itself takes a complex tensor for one of floats, where it sums it in place
COMPLEX = "torch.ones(2).to(torch.{}).npu()"
LIMITS[f"dist.all_reduce({COMPLEX.format('complex64')})"] = None
LIMITS[f"dist.all_reduce({COMPLEX.format('complex128')})"] = DTYPE
LIMITS[f"dist.reduce({COMPLEX.format('complex64')}, 0)"] = DTYPE
# What is only moved may have any dtype.
for dtype in ("float64", "bool", "uint16", "complex64"):
    LIMITS[f"dist.broadcast(torch.ones(2).to(torch.{dtype}).npu(), 1)"] = None
# Of this HCCL says why in its log alone.
LIMITS["dist.broadcast(torch.ones(2, device='npu'), 2)"] = ("error code is 1", "")
LIMITS["dist.all_reduce(torch.ones(2, 3, device='npu').t().contiguous())"] = None
LIMITS["dist.all_reduce(torch.ones(2, 3, device='npu').t())"] = (
    "Tensors must be contiguous",
    "tensors-must-be-contiguous",
)
LIMITS["dist.all_reduce(torch.ones(2))"] = (
    "No backend type associated with device type cpu",
    "no-backend-for-cpu",
)


@pytest.mark.parametrize(
    ("soc", "limits"),
    [
        ("Ascend910B2", LIMITS),
        # An Atlas of the first generation takes no int16 at all, and one for inference only sums it.
        (
            "Ascend910A",
            {
                reduced("all_reduce", "SUM", "int16"): ("The expected value is float16, float32.", "EI0003"),
                reduced("all_reduce", "PRODUCT", "int32"): None,
            },
        ),
        (
            "Ascend310P3",
            {
                reduced("all_reduce", "SUM", "int16"): None,
                reduced("all_reduce", "MAX", "int16"): ("Value max for parameter op is invalid", "EI0003"),
            },
        ),
    ],
    ids=["Atlas A2", "Atlas A1", "Atlas 300"],
)
def test_collectives_at_their_limits(emulate, soc: str, limits: Limits) -> None:
    command = (*torchrun(2), f"{PROGRAMS}/collective_limits.py", *limits)
    done = emulate(*command, options=("--devices", "2", "--soc", soc))
    found: Limits = {}
    for statement, text in map(json.loads, done.stdout.splitlines()):
        said, expected = explain_text(text), limits[statement]
        whole = text if expected is None or expected[0] not in text else expected[0]
        found[statement] = (whole, said.entry.code if said and said.entry else "") if text else None
    assert found == limits, done.stderr[-3000:]


def test_the_allocator_s_options_that_exclude_each_other(emulate) -> None:
    """torch_npu's own check."""
    program = "import torch; torch.ones(1, device='npu')"
    for options in ("expandable_segments:True", "max_split_size_mb:64"):
        done = emulate("python", "-c", program, env={"PYTORCH_NPU_ALLOC_CONF": options})
        assert done.returncode == 0, done.stderr
    both = "expandable_segments:True,max_split_size_mb:64"
    done = emulate("python", "-c", program, env={"PYTORCH_NPU_ALLOC_CONF": both})
    said = explain_text(done.stderr)
    assert (done.returncode, said and said.entry and said.entry.code) == (1, "alloc-conf-conflict"), (
        done.stderr
    )
