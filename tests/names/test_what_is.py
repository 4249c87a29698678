"""What a value is, as far as a file tells."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.what_is import CLASS, FOREIGN, MAYBE, MODULE, OTHER, TENSOR, UNKNOWN, Value, what_is

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
        ("torch.zeros(3)", "", TENSOR),
        ("torch.device('cpu')", "", OTHER),
        ("nn.functional.relu(thing)", "", TENSOR),
        ("nn.Linear(1, 1)", "", MODULE),
        ("nn.Sequential(thing)[0]", "", MODULE),
        ("x", "x = torch.zeros(3)", TENSOR),
        ("x", "x = torch.zeros(3)\nx += 1", TENSOR),
        ("x", "x = torch.zeros(3)\nx = x * 2", TENSOR),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = thing()", MAYBE),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = 'a'", UNKNOWN),
        ("x", "x = nn.ReLU()\nif ready:\n    x = nn.GELU()", MODULE),
        ("x", "x = nn.ReLU()\nif ready:\n    x = 'a'", OTHER),
        ("x", "x = torch.zeros(3)\nx = thing()", UNKNOWN),
        ("x", "x = torch.zeros(3)\nx = 'a'", OTHER),
        ("x", "x = thing()\nx = torch.zeros(3)", TENSOR),
        ("x", "x = torch.zeros(3)\nx = thing(x)", MAYBE),
        ("x", "x = torch.zeros(3)\nx = thing(x)[0]", UNKNOWN),
        ("x", "x = torch.zeros(3)\nx = x.view(-1)", TENSOR),
        ("x", "x: Tensor = thing()", TENSOR),
        ("x", "x: nn.Module = thing()", MODULE),
        ("x[0].T", "x = torch.zeros(3)", TENSOR),
        ("x.item()", "x = torch.zeros(3)", OTHER),
        ("x.shape", "x = torch.zeros(3)", OTHER),
        ("x.cuda().float()", "x = torch.zeros(3)", TENSOR),
        ("values", "values, places = torch.zeros(3).max(0)", TENSOR),
        ("next(net.parameters())", "", TENSOR),
        ("next(iter(net.buffers(recurse=False)))", "", TENSOR),
        ("next(rows)", "", UNKNOWN),
        ("x", "for x in net.parameters():\n    pass", TENSOR),
        ("x", "for x in rows:\n    pass", UNKNOWN),
        ("make()", "def make():\n    return torch.zeros(3)", TENSOR),
        ("make()", "def make() -> Tensor: ...", TENSOR),
        ("make()", "def make():\n    return 1", OTHER),
        ("Net()", "class Net: ...", CLASS),
        ("Mine()", "class Mine(torch.Tensor): ...", TENSOR),
        ("np.zeros(3)", "", OTHER),
        ("np.pi", "", FOREIGN),
        ("np", "", FOREIGN),
        ("thing()", "", UNKNOWN),
        ("thing", "", UNKNOWN),
        ("args.x", "", OTHER),
        ("[1]", "", OTHER),
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
        ("nn.Linear(1, 1)", "", "torch.nn.Linear"),
        ("x", "x = nn.ReLU()\nif ready:\n    x = nn.GELU()", ""),
        ("Net()", "class Net: ...", "Net"),
        ("np.pi", "", "numpy.pi"),
        ("thing()", "", "somewhere.thing"),
        ("x", "x: Batch = thing()", "somewhere.thing"),
    ],
)
def test_the_name_of_its_class_or_library(expression: str, before: str, name: str) -> None:
    assert value(expression, before).name == name


@pytest.mark.parametrize(
    ("expression", "before", "answer"),
    [
        ("nn.Linear(1, 1)", "", True),
        ("[1]", "", True),
        ("np", "", True),
        ("np.pi", "", True),
        ("lib.thing", "import lib", False),
        ("thing()", "", False),
        ("torch.zeros(3)", "", False),
        ("x", "x = torch.zeros(3)\nif ready:\n    x = thing()", False),
    ],
)
def test_what_is_surely_no_tensor(expression: str, before: str, answer: bool) -> None:
    assert value(expression, before).is_no_tensor is answer
