"""Which dtypes an operator takes: CANN's errors where its documents are clear; with --strict all documents.

``api_db/by_hand/cann_dtypes.csv`` has what CANN's own calls check, on all chips or on some product lines. A
row holds for the operators without regard to overloads; without dtypes, the line does not have the operators.
``api_db/api_support.csv`` has what torch_npu's documents list for functions of torch.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from npumigrate_emulator import compute

_WORDS = {
    "bf16": "BFLOAT16",
    "fp16": "FLOAT16",
    "fp32": "FLOAT",
    "fp64": "DOUBLE",
    "uint8": "UINT8",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
}


# By the beginning of a chip's name: the first that fits. Ascend910B without a number is of the first line.
_LINES = (
    *(("Ascend950", "950DT"), ("Ascend910_95", "950DT"), ("Ascend910_93", "A3"), ("Ascend910B.", "A2")),
    *(("Ascend910", "A1"), ("Ascend310P", "310P")),
)
_NUMBERS = {15: torch.bfloat16}  # torch's numbers of dtypes
Row = dict[str, str]


def register(version: str) -> None:
    """Tell the kernels what to refuse, for a version of torch."""
    listed = _listed()
    if os.environ.get("NPUMIGRATE_EMULATOR_STRICT") == "1":
        for operator, words in _documented(_folder(), version):
            if f"aten::{operator}" not in listed:
                compute.list_dtypes(f"aten::{operator}", "", (), sorted(_WORDS[word] for word in words))
    for operator, rows in listed.items():
        if operator.startswith("aten::"):
            for row in rows:
                compute.list_dtypes(operator, row["call"], row["arguments"].split(), row["dtypes"].split())


def checked(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of an operator of torch_npu's own, with what the chip refuses of it."""
    rows = _listed().get(f"npu::{name.split('.')[0]}")
    if rows is None:
        return kernel
    packet, _, overload = name.partition(".")
    listed = {argument for row in rows for argument in row["arguments"].split()}
    schema = torch._C._get_schema(f"npu::{packet}", overload)
    names = [argument.name for argument in schema.arguments]
    own = ["self" if name == "input" and "input" not in listed else name for name in names]

    def refusing(*args: Any, **options: Any) -> Any:
        given = {**dict(zip(own, args)), **{own[names.index(each)]: options[each] for each in options}}
        for row in rows:
            _check(packet, row, given)
        return kernel(*args, **options)

    return refusing


def _check(name: str, row: Row, given: dict[str, Any]) -> None:
    can = [f"DT_{dtype}" for dtype in row["dtypes"].split()]
    if not can:
        kind = re.sub(r"^aclnn|V\d+$", "", row["call"])
        family = re.match(r"Ascend(310P|910B(?=\d)|\d+)", _chip())
        _raise(
            name, row["call"], 161001,
            f"Get regInfo failed, The binary_info_config.json of socVersion "
            f"[ascend{family[1].lower() if family else ''}] does not support opType [{kind}].",
        )  # fmt: skip
    for argument in row["arguments"].split():
        value = given.get(argument)
        for each in value if isinstance(value, (list, tuple)) else (value,):
            dtype = each.dtype if isinstance(each, Tensor) else _NUMBERS.get(each, each)
            found = _cann_name(dtype) if isinstance(dtype, torch.dtype) else can[0]
            if found not in can:
                _raise(
                    name, row["call"], 161002,
                    f"Tensor {argument} not implemented for {found}, "
                    f"should be in dtype support list [{','.join(can)},].",
                )  # fmt: skip


def _raise(name: str, call: str, code: int, words: str) -> None:
    from torch_npu.utils import _error_code as codes

    text = (
        f"{name}: NPU function error: call {call} failed, error code is {code}"
        f"{codes.pta_error(codes.ErrCode.ACL)}.\n[PID: {os.getpid()}] AclNN_Parameter_Error(EZ1001): {words}"
    )
    if not compute.library().emulator_keep_for_later(text.encode()):
        raise RuntimeError(text)


def _cann_name(dtype: torch.dtype) -> str:
    word = str(dtype).removeprefix("torch.")
    return "DT_" + {"float32": "FLOAT", "float64": "DOUBLE"}.get(word, word.upper())


def _chip() -> str:
    return os.environ.get("NPUMIGRATE_EMULATOR_SOC") or "Ascend910B2"


def _folder() -> str:
    return os.environ["NPUMIGRATE_EMULATOR_API_DB"]


@cache
def _listed() -> dict[str, list[Row]]:
    """Return the rows for this chip by operator: those of its product line, where there are any, alone."""
    line = next((line for start, line in _LINES if re.match(start, _chip())), "A2")
    by_operator: dict[str, dict[bool, list[Row]]] = {}
    for row in _rows(_folder(), "by_hand", "cann_dtypes.csv"):
        lines = row["products"].split()
        if lines and line not in lines:
            continue
        for operator in row["operators"].split():
            by_operator.setdefault(operator, {}).setdefault(bool(lines), []).append(row)
    return {operator: found.get(True) or found[False] for operator, found in by_operator.items()}


def _rows(*path: str) -> Iterator[dict[str, str]]:
    with open(os.path.join(*path), encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _documented(folder: str, version: str) -> list[tuple[str, set[str]]]:
    """Return what the documents list for each operator; where they speak of single arguments, nothing."""
    found: dict[str, set[str]] = {}
    unclear = set()
    for row in _rows(folder, "api_support.csv"):
        if not row["aten"] or not _holds(row, version):
            continue
        words = row["dtypes"].split("+") if row["dtypes"] else []
        if row["status"] == "unsupported":
            found.setdefault(row["aten"], set())
        elif words and all(word in _WORDS for word in words):
            found.setdefault(row["aten"], set()).update(words)
        else:
            unclear.add(row["aten"])
    return [(name, words) for name, words in found.items() if name not in unclear]


def _holds(row: dict[str, str], version: str) -> bool:
    return _key(row["from"]) <= _key(version) and (not row["to"] or _key(version) <= _key(row["to"]))


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())
