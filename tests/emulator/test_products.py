"""What the product lines of NPUs differ in, each at its limit: what is listed of a line runs, all else not.

A line's rows are in `api_db/by_hand/cann_dtypes.csv`, each with its source.
"""

from __future__ import annotations

import csv
import json

import pytest

from migrator.data_folders import data_folder
from tests.emulator.test_distributed import PROGRAMS
from tests.explain import explain_text

PROGRAM = """
import json, sys, torch, torch_npu
def of(dtype, *size):
    data = torch.ones(size or (2, 8))
    return data.to(getattr(torch, dtype)).npu()
for statement in sys.argv[1:]:
    try:
        eval(statement)
        text = ""
    except RuntimeError as error:
        text = str(error)
    print(json.dumps([statement, text]))
"""
LISTED = "should be in dtype support list [{}].".format
BF16 = "not implemented for DT_BFLOAT16"
GONE = "The binary_info_config.json of socVersion [{}] does not support opType [{}].".format


def norm(dtype: str) -> str:
    return f"torch_npu.npu_rms_norm(of('{dtype}'), of('{dtype}', 8))"


def attention(layout: str = "BNSD") -> str:
    heads = ", ".join(["of('float16', 1, 2, 4, 8)"] * 3)
    return f"torch_npu.npu_fusion_attention({heads}, 2, '{layout}')"


def scattered(dtype: str) -> str:
    place = "torch.zeros(1, 1, dtype=torch.int32).npu()"
    return f"torch_npu.npu_scatter_nd_update(of('{dtype}'), {place}, of('{dtype}', 1, 8))"


def product(dtype: str) -> str:
    return f"of('{dtype}') @ of('{dtype}', 8, 2)"


SWIGLU = "torch_npu.npu_swiglu(of('float16'))"
UPDATED = (
    "torch_npu.scatter_update(of('float16', 2, 4, 8), torch.zeros(2, dtype=torch.int64).npu(), "
    "of('float16', 2, 1, 8), -2)"
)
CAST = "of('float32').to(torch.bfloat16)"
ADDED = "torch_npu.npu_add_rms_norm(of('float16'), of('float16'), of('float16', 8))"
# What moves as it is has any dtype: the host casts before.
MOVED = "of('bfloat16').clone().cpu()"
ALL = (
    *(norm(dtype) for dtype in ("float32", "float16", "bfloat16")),
    *(product(dtype) for dtype in ("float32", "float16", "bfloat16")),
    *(scattered(dtype) for dtype in ("float32", "bool", "int64")),
    *(attention(), SWIGLU, UPDATED, ADDED, CAST, MOVED),
)
# What is refused, by the chip; all else runs.
OLD = {
    norm("bfloat16"): ("call aclnnRmsNorm failed", "Tensor self " + BF16, LISTED("DT_FLOAT16,DT_FLOAT,")),
    product("bfloat16"): ("call aclnnMm failed, error code is 161002", "Tensor self " + BF16),
    scattered("int64"): ("not implemented for DT_INT64", LISTED("DT_FLOAT,DT_FLOAT16,DT_BOOL,")),
    CAST: (BF16,),
}
REFUSED = {
    "Ascend910B2": {},
    "Ascend910_9391": {},
    "Ascend910A": {
        **OLD,
        attention(): ("error code is 161001", GONE("ascend910", "FlashAttentionScore")),
        SWIGLU: (GONE("ascend910", "SwiGlu"),),
        ADDED: (GONE("ascend910", "AddRmsNorm"),),
    },
    "Ascend310P3": {
        **OLD,
        attention(): (GONE("ascend310p", "FlashAttentionScore"),),
        SWIGLU: (GONE("ascend310p", "SwiGlu"),),
        UPDATED: (GONE("ascend310p", "InplaceScatterUpdate"),),
    },
}


@pytest.mark.parametrize("soc", REFUSED)
def test_operators_at_the_limits_of_a_product_line(emulate, soc: str) -> None:
    done = emulate("python", "-c", PROGRAM, *ALL, options=("--devices", "1", "--soc", soc))
    found = dict(map(json.loads, done.stdout.splitlines()))
    assert set(found) == set(ALL), done.stderr[-3000:]
    assert {statement for statement, text in found.items() if text} == set(REFUSED[soc]), found
    for statement, parts in REFUSED[soc].items():
        for part in parts:
            assert part in found[statement]
        said = explain_text(found[statement])
        assert said, found[statement]
        assert said.entry, found[statement]


def test_the_switches_of_hf32_are_as_documented(emulate) -> None:
    program = (
        "import torch, torch_npu\n"
        "npu = torch_npu.npu\n"
        "print(npu.matmul.allow_hf32, npu.conv.allow_hf32, npu.aclnn.allow_hf32)\n"
        "npu.matmul.allow_hf32, npu.conv.allow_hf32 = True, False\n"
        "print(npu.matmul.allow_hf32, npu.conv.allow_hf32, npu.aclnn.allow_hf32)\n"
        "npu.aclnn.allow_hf32 = True\n"
        "print(npu.conv.allow_hf32)\n"
        "try:\n"
        "    npu.matmul.allow_hf32 = 1\n"
        "except TypeError as error:\n"
        "    print(str(error).splitlines()[0])\n"
        "data = torch.full((1, 1), 1 + 2.0**-16)\n"
        "print(torch.equal((data.npu() @ data.npu()).cpu(), data @ data))\n"
    )
    done = emulate("python", "-c", program)
    assert done.stdout.splitlines() == [
        *("False True True", "True False False", "True", "allow_hf32 must be a bool, but got int", "True")
    ], done.stderr[-3000:]


def test_each_row_names_arguments_that_its_operators_have(emulate) -> None:
    done = emulate("python", f"{PROGRAMS}/listed_arguments.py")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-3000:]


def test_each_row_of_a_product_line_has_what_it_needs() -> None:
    with open(data_folder("api_db") / "by_hand" / "cann_dtypes.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["call"].startswith("aclnn"), row
        assert row["source"], row
        assert set(row["products"].split()) <= {"A1", "A2", "A3", "310P", "950DT"}, row
        assert row["dtypes"] or row["products"], row
        assert bool(row["arguments"]) == bool(row["dtypes"]), row
