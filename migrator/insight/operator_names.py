"""Which API of torch an operator is, and what becomes of it on an NPU."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Optional

from migrator.api_support import support, tables, verdicts
from migrator.api_support.versions import TorchVersion
from migrator.data_folders import reports_yaml
from migrator.insight.recorded import Recorded

_MODULES = ("torch.", "torch.nn.functional.", "torch.Tensor.", "torch.special.")
_OWN = re.compile(r"^(?:_native_|native_|_)|(?:_forward|_with_indices|_default|_impl|_)$")
_FIRST_LISTS = (2, 1)  # from here on a wheel lists every kernel that it registers
# Bytes of an element, for the types that matrix units compute with.
HALVES = ("Half", "BFloat16")


def names_of(what: str) -> Any:
    """What ``reports/insight_names.yaml`` has of some kind of names."""
    return reports_yaml("insight_names.yaml")[what]


@cache
def api_of(operator: str, version: TorchVersion) -> str:
    """The documented API that an operator such as ``aten::nonzero`` is, or ''."""
    name = operator.partition("::")[2].partition(".")[0]
    plain = names_of("operators").get(name) or name
    for spelled in dict.fromkeys((plain, _OWN.sub("", _OWN.sub("", plain)))):
        for module in _MODULES:
            if support.look_up(module + spelled, version) is not None:
                return module + spelled
    return ""


def shown(operator: str, version: TorchVersion) -> str:
    """An operator as a person knows it: its API, or else its own name."""
    if operator == "aten::index.Tensor":
        return "an index of truth values"
    return api_of(operator, version) or operator


@cache
def verdict_of(operator: str, version: TorchVersion, hardware: str) -> Optional[verdicts.Verdict]:
    """What is known of the API behind an operator."""
    api = api_of(operator, version)
    return verdicts.judge(api, version, hardware) if api else None


def lacks_kernel(operator: str, process: Recorded, version: TorchVersion, installed: TorchVersion) -> bool:
    """Whether torch_npu at a version leaves an operator to the CPU.

    For the installed one its dispatcher says it. For another one the table of kernels does, which lists all
    from torch_npu 2.1 on, where it agrees with the dispatcher about the installed one.
    """
    if not operator.startswith("aten::"):
        return False
    lacking = operator in process.without_npu_kernel
    if version == installed:
        return lacking
    if version.tuple < _FIRST_LISTS:
        base = operator.partition("::")[2].partition(".")[0]
        return support.registered(base, version) in ("fallback", "none")
    if lacking:
        return operator not in _kernels(operator, version)
    # Without a kernel of its own an overload may come to the one that writes to a given tensor.
    own = operator in _kernels(operator, installed)
    return own and operator not in process.composite and not _kernels(operator, version)


@cache
def _kernels(operator: str, version: TorchVersion) -> frozenset[str]:
    """The overloads of an operator that torch_npu has kernels for."""
    base = operator.partition("::")[2].partition(".")[0]
    return frozenset(
        f"aten::{row.op}"
        for row in support.kernels(base)
        if row.kind == "kernel" and tables.covers(row.first, row.last, version.tuple)
    )
