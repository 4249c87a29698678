"""The functions that stand for CUDA operators, held to these operators' own kernels.

``cuda_kernels.pt`` has drawn inputs and what the CUDA sources of the operators make of them: the kernels were
compiled for the CPU, where each thread of a block ran in turn (see docs/operators.md).
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
import torch_npu  # noqa: F401

from migrator.api_support import support
from migrator.api_support.versions import resolve
from tests.emulator.on_npu.test_equivalent_functions import (
    VERSIONS,
    Operators,
    functions,  # noqa: F401
    of_operators,
)

STORED = torch.load(Path(__file__).with_name("cuda_kernels.pt"), weights_only=True)
CALLS = json.loads(STORED["calls"])
NAMES = sorted({name for name, _given, _wanted in CALLS})


def tensor(value):
    """A tensor of the file; what is none stays as it is."""
    if not isinstance(value, dict):
        return value
    ((kind, (start, *shape)),) = value.items()
    numbers = STORED["numbers"][start : start + math.prod(shape)]
    return numbers.to(getattr(torch, kind)).reshape(shape)


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_the_kernels_give(functions, name: str) -> None:  # noqa: F811
    for _name, given, wanted in (call for call in CALLS if call[0] == name):
        arguments = [each.npu() if torch.is_tensor(each) else each for each in map(tensor, given)]
        with Operators() as seen:
            result = getattr(functions, name)(*arguments)
        for version in VERSIONS:
            lacking = {each for each in seen.names if support.kernel(each, resolve(version)) == "none"}
            assert not lacking - {"detach", "alias", "_to_copy"}, version
        results = iter(result if isinstance(result, (list, tuple)) else [result])
        for filled, value in wanted:
            found = next(results) if filled is None else arguments[filled]
            torch.testing.assert_close(found.cpu(), tensor(value), rtol=1e-4, atol=1e-5)


def test_each_function_of_the_table_has_a_call() -> None:
    assert of_operators() == set(NAMES)
