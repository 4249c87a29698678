"""The NPU counterpart of an environment variable for CUDA or NCCL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Optional

from migrator.api_support import tables

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
# The options that torch_npu's allocator knows as well.
ALLOCATOR_OPTIONS = frozenset(
    "max_split_size_mb garbage_collection_threshold expandable_segments roundup_power2_divisions".split()
)


@dataclass(frozen=True)
class EnvVar:
    """One variable.

    ``npu`` is empty where no variable means the same. ``same_values`` says
    whether its values can stay; where they cannot, ``advice`` says why.
    """

    name: str
    npu: str
    same_values: bool
    advice: str
    source: str


def look_up(name: str) -> Optional[EnvVar]:
    """The variable of that name, or None where it is not known."""
    return _table().get(name)


def carries_over(variable: EnvVar, value: str) -> bool:
    """Whether a variable can be renamed with the ``value`` that it has.

    The allocator's options are looked at one by one.
    """
    if variable.name in ALLOCATOR_VARIABLES:
        return all(option.partition(":")[0].strip() in ALLOCATOR_OPTIONS for option in value.split(","))
    if variable.name == "CUDA_VISIBLE_DEVICES":  # a UUID or -1 means nothing on an NPU
        return bool(re.fullmatch(r"[\d, ]*|\$.*", value))
    return variable.same_values


@cache
def names() -> frozenset[str]:
    """Every CUDA-side variable that is known."""
    return frozenset(_table())


@cache
def _table() -> dict[str, EnvVar]:
    return {
        name: EnvVar(name, npu, same_values == "yes", advice, source)
        for name, npu, same_values, advice, source in tables.rows("env_vars")
    }
