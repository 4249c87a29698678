"""The NPU counterpart of an environment variable for CUDA or NCCL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Optional

from migrator.api_support import tables


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
