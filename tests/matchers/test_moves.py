"""How ``.cuda(…)`` is written where the rest of the project decides."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrated

NET = """\
import torch
from torch import nn


def gate(x):
    return x if x.is_cuda else x.cuda()


class Net(nn.Module):
    def forward(self, x):
        return gate(x)


def main():
    return Net().cuda()
"""


@pytest.mark.parametrize(
    ("other", "compiled"),
    [
        ("import torch\nfrom net import Net\nscripted = torch.jit.script(Net())\n", True),
        ("from torch import jit\nfrom net import build\nmodel = build()\nmodel = jit.script(model)\n", True),
        ("from torch.jit import script\nfrom net import Net\nscripted = script(Net())\n", True),
        ("import torch\ndef double(x):\n    return x\ndouble = torch.jit.script(double)\n", False),
        ("import torch\n@torch.jit.script\ndef double(x):\n    return x\n", False),
        ("import torch\nmodel = torch.jit.trace(build(), x)\n", False),
    ],
)
def test_a_call_of_script_anywhere_compiles_modules(other: str, compiled: bool) -> None:
    text = migrated(NET, others=(other,))
    assert ('x if x.device.type == "npu" else x.to("npu")' in text) == compiled
    assert ("x.is_npu else x.npu()" in text) == (not compiled)
    assert "return Net().npu()" in text


def test_functions_given_to_script_are_compiled_with_those_they_call() -> None:
    text = migrated(
        "import torch\n\n"
        "def inner(x):\n    return x.cuda()\n\n"
        "def outer(x):\n    return inner(x)\n\n"
        "def plain(x):\n    return x.cuda()\n\n"
        "fast = torch.jit.script(outer)\n"
    )
    assert 'def inner(x):\n    return x.to("npu")' in text
    assert "def plain(x):\n    return x.npu()" in text


def test_a_class_of_lightning_in_another_file() -> None:
    other = "import pytorch_lightning as pl\n\nclass Lit(pl.LightningModule):\n    pass\n"
    text = 'import torch\nfrom lit import Lit\nnet = Lit().cuda()\na = Lit.load_from_checkpoint("a").cuda()\n'
    assert migrated(text, others=(other,)).count('.to("npu")') == 2
    assert '.to("npu")' not in migrated(text)


@pytest.mark.parametrize(
    ("chosen", "after"),
    [
        ("torch.cuda.set_device(args.gpu)", ".npu(args.gpu)"),
        ("torch.cuda.set_device(args.rank)", '.to(torch.device("npu", args.gpu))'),
        ("", '.to(torch.device("npu", args.gpu))'),
    ],
)
def test_the_current_device_needs_no_number(chosen: str, after: str) -> None:
    text = "import torch\n\ndef place(model, args):\n    return model.cuda(args.gpu)\n"
    assert f"return model{after}\n" in migrated(
        text, others=(f"import torch\n\ndef setup(args):\n    {chosen}\n",)
    )


def test_the_second_argument_is_named() -> None:
    text = "import torch\n\n@torch.jit.script\ndef place(x):\n    return x.cuda(1, True)\n"
    assert 'x.to("npu:1", non_blocking=True)' in migrated(text)
