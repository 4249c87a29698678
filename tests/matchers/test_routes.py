"""Torch by other routes: what a name is resolved to, what is only reported, and what is something else."""

from __future__ import annotations

from textwrap import dedent

import pytest

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine, migrate, migrated

# What it is, the text, and the line that stays as it is with a finding.
LEFT = {
    "a dictionary": ("import torch\nheld = {'torch': torch}\nready = held['torch'].cuda.is_available()\n", 3),
    "another file's function": (
        "from .helpers import get_torch\nready = get_torch().cuda.is_available()\n",
        2,
    ),
    "a parameter": ("def ready(lib):\n    return lib.cuda.is_available()\n", 2),
    "a parameter that one call gives something else": (
        "import torch, cupy_like\ndef ready(lib):\n    return lib.cuda.is_available()\n"
        "ready(torch), ready(cupy_like)\n",
        3,
    ),
    "an attribute of an unknown base": (
        "from .helpers import Base\nclass A(Base):\n    def f(self):\n"
        "        return self.lib.cuda.is_available()\n",
        4,
    ),
    "a text that is split": (
        "import torch\nfrom functools import reduce\n"
        "ready = reduce(getattr, 'cuda.is_available'.split('.'), torch)\n",
        3,
    ),
    "a text by a name": ("import torch\ncode = 'torch.ones(1).cuda()'\nready = eval(code)\n", 2),
    "a text for another Python": (
        "import subprocess\nsubprocess.run(['python', '-c', 'import torch; torch.cuda.init()'])\n",
        2,
    ),
}
OTHERS = {
    "settings": "def f(cfg, args):\n"
    "    return cfg.cuda.is_available(), vars(args)['cuda'], cfg.__dict__['cuda']\n",
    "another library's": "import cupy\ndef f(xp):\n    return xp.cuda.is_available()\n",
    "a module of another package": "import paddle\npaddle.device.cuda.synchronize()\n",
    "a function of torch.cuda's name": "def f(holder):\n    return holder.cuda.memory_allocated\n",
    "a stub": "from types import SimpleNamespace\ntorch = SimpleNamespace(cuda=None)\nx = torch.cuda\n",
    "what is imported by another name": "model = lazy_load('model')\nmodel.cuda.run()\n",
}


@pytest.mark.parametrize("case", LEFT)
def test_what_cannot_be_resolved_is_reported(case: str) -> None:
    text, line = LEFT[case]
    result = migrate(text)
    assert line in [found.line for found in result.findings if found.fix is None]
    assert (result.text or text).splitlines().count(text.splitlines()[line - 1]) == 1


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_something_else_is_left_in_silence(case: str) -> None:
    result = migrate(OTHERS[case])
    assert result.text is None
    assert [found for found in result.findings if found.code < "NPU6"] == []


def test_a_module_that_is_handed_in_is_an_unsafe_fix() -> None:
    text = "def f(torch):\n    torch.cuda.synchronize()\n"
    assert "torch.npu.synchronize" in migrated(text)
    assert migrate(text, safe_only=True).text is None


IMPORTED = [
    "importorskip('torch', '2.0')",
    "get_module('torch', 'no torch')",
    "lazy_import('torch')",
    "try_import('torch')[0]",
]


@pytest.mark.parametrize("value", IMPORTED)
def test_functions_that_import_a_name(value: str) -> None:
    text = f"torch = helpers.{value}\ntorch.cuda.synchronize()\n"
    assert "torch.npu.synchronize()" in migrated(text)


@pytest.mark.parametrize("value", ["ModuleType('torch')", "load('torch')", "lazy_load('torch.pt')"])
def test_functions_that_make_something_else(value: str) -> None:
    assert migrate(f"import types\nlib = helpers.{value}\nlib.cuda.memory_allocated\n").text is None


KEPT = [
    (
        "class A:\n    @property\n    def lib(self):\n        return torch\n",
        "self.lib.cuda.init()",
        "self.lib.npu.init()",
    ),
    ("class A:\n    lib = torch.cuda\n", "self.lib.CUDAGraph()", "self.lib.NPUGraph()"),
    ("class B:\n    lib = torch\nclass A(B):\n", "B.lib.cuda.init()", "B.lib.npu.init()"),
    ("cards = vars(torch).get('cuda')\nclass A:\n", "cards.CUDAGraph()", "cards.NPUGraph()"),
    ("def lib():\n    return torch\nclass A:\n", "lib().cuda.init()", "lib().npu.init()"),
]


@pytest.mark.parametrize(("before", "used", "after"), KEPT)
def test_where_torch_is_kept(before: str, used: str, after: str) -> None:
    assert after in migrated(f"import torch\n{before}    def run(self):\n        {used}\n")


def test_names_that_another_file_gives_a_module() -> None:
    helpers = "import torch as th\nfrom torch import cuda as cards\nlib = th\nbackend = torch\n"
    text = dedent(
        """
        from pkg.helpers import th, cards
        from . import helpers
        x = th.cuda.CUDAGraph(), cards.CUDAGraph(), helpers.th.cuda.synchronize()
        helpers.backend.cuda.synchronize()
        """
    )
    facts = [scan_file("pkg/helpers.py", helpers), scan_file("pkg/train.py", text)]
    result = migrate_text(engine("2.6"), "pkg/train.py", text, merge_facts(facts)).text
    assert result is not None
    assert "th.npu.NPUGraph(), cards.NPUGraph(), helpers.th.npu.synchronize()" in result
    assert "helpers.backend.npu.synchronize()" in result


def test_the_import_stands_before_what_runs_before_torch_is_imported() -> None:
    text = "from helpers import *\nready = torch.cuda.is_available()\nimport torch\n"
    after = "from helpers import *\nimport torch_npu\nready = torch.npu.is_available()\nimport torch\n"
    assert migrated(text) == after
