"""What torch.cuda has takes the same arguments in torch.npu, but for what a rule knows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Optional

import pytest
import torch
import torch_npu  # noqa: F401

# By the rule that changes or reports a call with one of these, or why there is none.
KNOWN = {
    "get_device_name": "NPU167",
    "get_device_properties": "NPU167",
    "can_device_access_peer": "NPU168",
    "graph": "NPU169",
    "GradScaler": "NPU170",
    "StreamContext": "given by its place: torch.cuda.stream is what programs call",
    "Event": "external is for graphs of CUDA alone",
    "MemPool.snapshot": "include_traces is new in torch 2.13",
    "memory_snapshot": "include_traces is new in torch 2.13",
}


def parameters(function: Any) -> Optional[list[str]]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def differing(cuda: Any, npu: Any) -> Iterator[str]:
    """The functions, classes and methods of a module of CUDA's with other parameters in that of NPUs."""
    for name in sorted(vars(cuda)):
        one, other = getattr(cuda, name), getattr(npu, name, None)
        if name.startswith("_") or inspect.ismodule(one) or not callable(one) or not callable(other):
            continue
        if parameters(one) is not None and parameters(one) != parameters(other):
            yield name
        methods = sorted(vars(one)) if inspect.isclass(one) else []
        for method in [each for each in methods if not each.startswith("_")]:
            here, there = getattr(one, method, None), getattr(other, method, None)
            if callable(here) and callable(there) and parameters(here) not in (None, parameters(there)):
                yield f"{name}.{method}"


@pytest.mark.parametrize("name", ["", ".amp", ".memory", ".random", ".streams", ".graphs"])
def test_calls_mean_the_same(name: str) -> None:
    modules = (
        import_module(f"{torch.get_device_module(device).__name__}{name}") for device in ("cuda", "npu")
    )
    assert set(differing(*modules)) <= set(KNOWN)


def test_no_rule_is_known_in_vain() -> None:
    found = {*differing(torch.cuda, torch.npu), *differing(torch.cuda.amp, torch.npu.amp)}
    assert found == set(KNOWN)
