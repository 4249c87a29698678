"""What torch.cuda has takes the same arguments in torch.npu, but for what a rule knows.

So do the functions of torch that torch_npu puts its own in the place of.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
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

# Functions of torch that torch_npu replaces by some with other parameters.
REPLACED = {
    "torch.distributed.gather": "NPU552",
    "torch.distributed.distributed_c10d.gather": "NPU552",
    "torch.from_dlpack": "NPU549",
    "torch.utils.dlpack.from_dlpack": "NPU549",
}

# In a process of its own, as torch_npu replaces them when it is imported.
SIGNATURES = """
import inspect, json, sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed.checkpoint, torch.distributed.fsdp, torch.distributed.tensor
import torch.nn.attention, torch.optim.swa_utils, torch.profiler, torch.utils.checkpoint
import torch.utils.data.distributed, torch.utils.dlpack, torch._dynamo, torch.onnx, torch.export


def parameters(function):
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def signatures(modules):
    for module in modules:
        for name, value in list(vars(sys.modules[module]).items()):
            if name.startswith("_") or inspect.ismodule(value) or not callable(value):
                continue
            yield f"{module}.{name}", parameters(value)
            for method in dir(value) if inspect.isclass(value) else ():
                if not method.startswith("_") and callable(getattr(value, method, None)):
                    yield f"{module}.{name}.{method}", parameters(getattr(value, method))


modules = [name for name in sys.modules if name.split(".")[0] == "torch" and "._" not in name]
before = dict(signatures(modules))
import torch_npu
after = dict(signatures(modules))
assert "torch.Tensor.to" in before and "torch.nn.Module.to" in before and "torch.optim.AdamW" in before
print(json.dumps([name for name in before if before[name] is not None and before[name] != after.get(name)]))
"""


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


def test_what_torch_npu_replaces_takes_the_same() -> None:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout.splitlines()[-1])) == set(REPLACED)
