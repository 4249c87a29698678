"""Names read off a text: at least those that parsing would find."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from migrator.names.written_names import imported_names, may_give, names_in, read_names


def names(text: str) -> set[str]:
    return names_in(read_names(text), "torch")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.cdist(a, b)", "torch.cdist"),
        ("import os, torch as th\nth.nn.GRU(1)", "torch.nn.GRU"),
        ("if x: import torch\ntorch.cdist", "torch.cdist"),
        ("import torch.nn.functional as F\nF.pdist(x)", "torch.nn.functional.pdist"),
        ("from torch import nn\nclass A(nn.GRU): pass", "torch.nn.GRU"),
        ("from torch.nn import (  # layers\n    GRU,\n    LSTM as L,\n)", "torch.nn.LSTM"),
        ("from torch.nn import GRU, \\\n    RNN", "torch.nn.RNN"),
        ("import torch\nnn = torch.nn\nnn.GRU()", "torch.nn.GRU"),
        ("import torch\ngetattr(torch.nn, 'GRU')", "torch.nn.GRU"),
    ],
)
def test_found(text: str, name: str) -> None:
    assert name in names(text)


def test_others_are_not() -> None:
    assert names("import numpy as np\nnp.cdist(torch.x)") == set()
    assert names("from torchvision import ops\nops.nms()") == set()


def test_words_are_the_parts_of_names() -> None:
    written = read_names("a.b(c)[0].d # e. ...")
    assert written.words == {"a", "b", "c", "d", "e", "0"}
    assert written.members == {"b", "d"}
    assert read_names("ä.b(c).d").members == {"b", "d"}


@given(st.text(st.sampled_from("ab._1 \n\r\x85\u2028(é显🚀²ſ")))
@example("torch.load\n# 显卡cuda 🚀torch.save\r\nx.à.b")
def test_words_are_those_that_a_pattern_finds(text: str) -> None:
    chains = re.findall(r"[\w.]+", text)
    written = read_names(text)
    assert written.words == {part for chain in chains for part in chain.split(".")} - {""}
    assert set(written.dotted) == {chain for chain in chains if "." in chain}


def test_names_that_end_a_sentence() -> None:
    assert names("import torch\n# as torch.nn.GRU. Not in torch. Or torch...") == {"torch.nn.GRU"}


@pytest.mark.parametrize("text", ["x. mode()", "x.\\\n  mode()", "(x.  # why\n  mode())"])
def test_members_apart_from_their_dot(text: str) -> None:
    assert "mode" in read_names(text).apart
    assert read_names("mode(x). model").apart == {"model"}


ENDS = [
    "torch.load(path)",
    "f()[0] . load",
    "from torch import (  # how\n    save,\n    load as read,\n)",
    "import os;from torch import load",
    "x = 1\rfrom torch import save, load\r",
    "from torch import *\nload(path)",
    "getattr(torch, 'load')",
    'vars(torch)["load"]',
]
ENDS_NOT = [
    "# load it",
    "def load(): ...",
    "load(x)",
    "f(load=1)",
    "json.load(f)",
    "from x import y\nload(y)",
]


@pytest.mark.parametrize(
    ("text", "expected"), [*((text, True) for text in ENDS), *((text, False) for text in ENDS_NOT)]
)
def test_words_that_may_end_a_full_name(text: str, expected: bool) -> None:
    assert "load" in read_names(text).words
    assert read_names(text).may_end("load") is expected


def test_packages_that_may_be_imported() -> None:
    for text in (
        "import apex.amp",
        "from apex import amp",
        "import_module('apex.amp')",
        "from x import *  # apex",
    ):
        assert read_names(text).may_import("apex")
    assert not read_names("the.apex(of)  # the apex").may_import("apex")


@pytest.mark.parametrize(
    ("gives", "text"),
    [
        (True, "nn.BatchNorm2d(3, bias=False)"),
        (True, "nn.BatchNorm2d(int(3),\n    bias = False)"),
        (True, "nn.BatchNorm2d \\\n(3, bias=False)"),
        (True, "nn.BatchNorm2d(')', bias=False)"),
        (True, "nn.BatchNorm2d(3,  # :)\n    bias=False)"),
        (True, "nn.BatchNorm2d(f(g(3)), bias=False)"),
        (True, "norm = nn.BatchNorm2d  # 2d\nnorm(bias=False)"),
        (True, "from torch.nn import BatchNorm2d as Norm\nNorm(bias=False)"),
        (True, "getattr(nn, 'BatchNorm2d')(bias=False)"),
        (False, "nn.BatchNorm2d(3)\nnn.Linear(3, bias=False)"),
        (False, "nn.BatchNorm2d(bias)"),
        (False, "def block(norm=nn.BatchNorm2d, bias=True): ..."),
        (False, "isinstance(x, nn.BatchNorm2d)\nx.bias == 1"),
    ],
)
def test_calls_that_may_give_a_keyword(gives: bool, text: str) -> None:
    assert may_give(text, "BatchNorm2d", ["bias"]) is gives


def test_a_text_that_speaks_of_importing_binds_nothing_without_letters() -> None:
    """Such a name stands everywhere: who looks for its places never ends."""
    assert list(imported_names('"""Files to\nimport .\nimport .x, a.b\n"""\n')) == [("a", "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import acme\nacme.b.load(x)", True),
        ("from acme.b import load", True),
        ("from acme import b as c\nd = c\nd.load(x)", True),
        ("import acme\ngetattr(acme.b, 'load')(x)", True),
        ("b = import_module('acme.b')\nb.load(x)", True),
        ("import acme\n(acme.b\n .load(x))", True),
        ("import acme\nmodel.load(x)", False),
        ("import acme\nacme.c.load(x)", False),
        ("from acme import b\nb.dump(x)", False),
        ("acme.b.load(x)", False),
    ],
)
def test_names_of_a_package_that_may_be_used(text: str, expected: bool) -> None:
    assert read_names(text).may_use(["acme"], "acme.b.load".__eq__, ["load"]) is expected
