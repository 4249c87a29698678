"""What a value is, as far as a file tells."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.what_is import CLASS, MAYBE, MODULE, OTHER, TENSOR, UNKNOWN, Value, what_is

FRAME = """
import numpy as np
import torch
import torch.nn as nn
from torch import Tensor
from somewhere import thing
{before}
mark({expression})
"""


def value(expression: str, before: str = "") -> Value:
    index = ModuleIndex(FRAME.format(before=before, expression=expression), {"mark"})
    call = next(call for call in index.calls if isinstance(call.func, ast.Name) and call.func.id == "mark")
    return what_is(index, call.args[0])


@pytest.mark.parametrize(
    ("expression", "before", "answer"),
    [
        ("x", "x = torch.zeros(3)\nif ready:\n    x = thing()", MAYBE),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = 'a'", UNKNOWN),
        ("x", "x = nn.ReLU()\nif ready:\n    x = 'a'", OTHER),
        ("x", "x = torch.zeros(3)\nx = thing(x)", MAYBE),
        ("x", "x: Tensor = thing()", TENSOR),
        ("x", "x: nn.Module = thing()", MODULE),
        ("x.item()", "x = torch.zeros(3)", OTHER),
        ("x.shape", "x = torch.zeros(3)", OTHER),
        ("next(iter(net.buffers(recurse=False)))", "", TENSOR),
        ("make()", "def make() -> Tensor: ...", TENSOR),
        ("Mine()", "class Mine(torch.Tensor): ...", TENSOR),
        ("thing", "", UNKNOWN),
        ("args.x", "", OTHER),
    ],
)
def test_expressions(expression: str, before: str, answer: str) -> None:
    assert value(expression, before).kind == answer


NET = """
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
        ("self", CLASS),
        ("self.weight", TENSOR),
        ("self.seen", TENSOR),
        ("self.mode", OTHER),
        ("self.conv", MODULE),
        ("self.conv(x)", TENSOR),
        ("self.lstm(x)", UNKNOWN),
        ("self.other", UNKNOWN),
    ],
)
def test_inside_a_module(expression: str, answer: str) -> None:
    assert value("0", NET.format(f"mark({expression})")).kind == answer


@pytest.mark.parametrize(
    ("expression", "before", "name"),
    [
        ("x", "x = nn.ReLU()\nif ready:\n    x = nn.GELU()", ""),
        ("thing()", "", "somewhere.thing"),
        ("x", "x: Batch = thing()", "somewhere.thing"),
    ],
)
def test_the_name_of_its_class_or_library(expression: str, before: str, name: str) -> None:
    assert value(expression, before).name == name


@pytest.mark.parametrize(
    ("expression", "before", "answer"),
    [
        ("np", "", True),
        ("np.pi", "", True),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = thing()", False),
    ],
)
def test_what_is_surely_no_tensor(expression: str, before: str, answer: bool) -> None:
    assert value(expression, before).is_no_tensor is answer
