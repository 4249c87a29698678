"""What is a tensor, as far as a file tells."""

from __future__ import annotations

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.tensors import MAYBE, OTHER, TENSOR, UNKNOWN, tensor_like

FRAME = """
import numpy as np
import torch
import torch.nn as nn
from torch import Tensor
from somewhere import thing
{before}
mark({expression})
"""


def kind(expression: str, before: str = "") -> str:
    index = ModuleIndex(FRAME.format(before=before, expression=expression), {"mark"})
    call = next(call for call in index.calls if getattr(call.func, "id", "") == "mark")
    return tensor_like(index, call.args[0])


@pytest.mark.parametrize(
    ("expression", "before", "answer"),
    [
        ("torch.zeros(3)", "", TENSOR),
        ("torch.device('cpu')", "", OTHER),
        ("nn.functional.relu(thing)", "", TENSOR),
        ("nn.Linear(1, 1)", "", OTHER),
        ("x", "x = torch.zeros(3)", TENSOR),
        ("x", "x = torch.zeros(3)\nx += 1", TENSOR),
        ("x", "x = torch.zeros(3)\nx = x * 2", TENSOR),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = thing()", MAYBE),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = 'a'", UNKNOWN),
        ("x", "x = torch.zeros(3)\nx = thing()", UNKNOWN),
        ("x", "x = torch.zeros(3)\nx = 'a'", OTHER),
        ("x", "x = thing()\nx = torch.zeros(3)", TENSOR),
        ("x", "x = torch.zeros(3)\nx = thing(x)", MAYBE),
        ("x", "x = torch.zeros(3)\nx = thing(x)[0]", UNKNOWN),
        ("x", "x = torch.zeros(3)\nx = x.view(-1)", TENSOR),
        ("x", "x: Tensor = thing()", TENSOR),
        ("x[0].T", "x = torch.zeros(3)", TENSOR),
        ("x.item()", "x = torch.zeros(3)", OTHER),
        ("x.shape", "x = torch.zeros(3)", OTHER),
        ("x.cuda().float()", "x = torch.zeros(3)", TENSOR),
        ("values", "values, places = torch.zeros(3).max(0)", TENSOR),
        ("make()", "def make():\n    return torch.zeros(3)", TENSOR),
        ("make()", "def make() -> Tensor: ...", TENSOR),
        ("make()", "def make():\n    return 1", OTHER),
        ("np.zeros(3)", "", OTHER),
        ("thing()", "", UNKNOWN),
        ("thing", "", UNKNOWN),
        ("args.x", "", OTHER),
        ("[1]", "", OTHER),
    ],
)
def test_expressions(expression: str, before: str, answer: str) -> None:
    assert kind(expression, before) == answer


MODULE = """
class Net(nn.Module):
    def __init__(self, size: int):
        self.conv = nn.Conv2d(1, 1, 1)
        self.lstm = nn.LSTM(1, 1)
        self.weight = nn.Parameter(torch.zeros(size))
        self.register_buffer("seen", torch.zeros(size))
        self.mode = "fast"

    def forward(self, x, mode="a", scale: float = 1, *rest):
        {}
"""


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("x", TENSOR),
        ("mode", OTHER),
        ("scale", OTHER),
        ("rest", UNKNOWN),
        ("self", OTHER),
        ("self.weight", TENSOR),
        ("self.seen", TENSOR),
        ("self.mode", OTHER),
        ("self.conv(x)", TENSOR),
        ("self.lstm(x)", UNKNOWN),
        ("self.other", UNKNOWN),
    ],
)
def test_inside_a_module(expression: str, answer: str) -> None:
    assert kind("0", MODULE.format(f"mark({expression})")) == answer
