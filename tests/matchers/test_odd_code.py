"""Code as people really write it: aliases, odd layout, odd places."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import inspect_text, migrate_text
from tests.matchers.migrating import engine, migrate, migrated

# What it is, and the text: the device's name changes, and torch_npu is imported behind torch.
MOVED = {
    "no final newline": "import torch\ntorch.cuda.init()",
    "form feed": "import torch\n\x0c\ntorch.cuda.init()\n",
    "backslash": "import torch\nx = torch \\\n    .cuda \\\n    .device_count()\n",
    "line separators in text": 'import torch\nT = "a\u2028b\x85c"\ntorch.cuda.init()\n',
    "wide characters before": 'import torch\nprint("显卡数", torch.cuda.device_count())\n',
    "class base and decorator": "import torch\n\nclass S(torch.cuda.Stream):\n    pass\n\n@torch.cuda.amp.autocast()\n"
    "def f(): pass\n",
    "torch as a parameter": "import torch\n\ndef f(torch):\n    return torch.cuda.init()\n",
    "nested f-string": "import torch\nn = f\"{torch.device(f'cuda:{1}')}\"\n",
    "f-string with spec": 'import torch\nn = f"{torch.cuda.memory_allocated() / 1e6:{10}.2f}"\n',
    "f-string over lines": 'import torch\nn = (f"é {1}"\n     f"{torch.cuda.device_count()}")\n',
    "percent and plus": 'import torch\na = torch.device("cuda:%d" % 1)\nb = torch.device("cuda" + ":0")\n',
    "prefix and quotes kept": 'import torch\na = torch.device(u\'cuda\'), torch.device(r"""cuda:0""")\n',
    "click": 'import click\n\n@click.option("--device", default="cuda", type=click.Choice(["cpu", "cuda"]))\n'
    "def main(device): pass\n",
    "parametrize": 'import pytest\nimport torch\n\n@pytest.mark.parametrize("device", ["cpu", "cuda"])\n'
    "def test(device): torch.zeros(2, device=device)\n",
    "literal": 'from typing import Literal\n\ndef f(device: Literal["cpu", "cuda"] = "cuda"): pass\n',
    "a dictionary looked up by device": 'import torch\nBATCH = {"cuda": 64, "cpu": 8}\n\ndef f(device):\n    return BATCH[device.type]\n',
    "an item of what is looked up by device": 'import torch\n\ndef f(device, held):\n    held["cuda"] += 1\n    return held[device]\n',
    "an item of what has devices as its keys": 'class A:\n    def f(self, n):\n        for i in range(n):\n            d = f"cuda:{i}"\n'
    '            self.used[d] = 0\n        self.used["cuda:0"] += 1\n',
    "device flows in": 'import torch\n\ndef f(where="cuda:0"):\n    return torch.zeros(2).to(where)\n',
    "one method or the other": "import torch\n\ndef f(model, gpu):\n    return (model.cuda if gpu else model.cpu)()\n",
    "dispatch by device": "import torch\nSYNC = {'cuda': torch.cuda.synchronize, 'cpu': None}\n",
    "literal with default": "from typing import Literal\n\nclass C:\n    kind: Literal['cuda', 'cpu'] = 'cuda'\n",
    "a Literal of devices": "import torch\nfrom typing import Literal\n\ndef f(kind: Literal['cpu', 'cuda'] = 'cuda'):\n"
    "    return torch.ones(1, device=kind)\n",
    "autocast by an alias": "import contextlib\nimport torch\n\ndef f(on):\n"
    "    scope = torch.autocast if on else contextlib.nullcontext\n    with scope('cuda'):\n"
    "        pass\n",
    "map_location by a variable": "import torch\n\ndef f(p, r):\n    where = {'cuda:%d' % 0: 'cuda:%d' % r}\n"
    "    return torch.load(p, map_location=where)\n",
    "a member of a function": "import torch\ntorch.cuda.is_available.__doc__\ntorch.cuda.device_count().bit_length()\n",
    "renamed definitions and their references": "import torch\n\nclass B(torch.nn.Module):\n    @property\n    def is_cuda(self):\n"
    "        return self.x.is_cuda\n\n    @is_cuda.setter\n    def is_cuda(self, v):\n        self.x = v.to(0)\n"
    "    def cuda(self):\n        return super().cuda()\n    to_gpu = cuda\n",
    "names of torch.cuda patched, without NPUs": "import torch\ntorch.cuda.synchronize = lambda: None\n",
}
# What stays as it is.
LEFT = {
    "a question that decides on a CUDA build": "import torch\nif torch.cuda.is_available():\n"
    "    ext = CUDAExtension('x', ['x.cu'])\n",
    "comprehension hides torch": "import torch\nx = [torch.cuda for torch in []]\n",
    "local variable hides cuda": "from torch import nn\n\ndef f(cuda):\n    return cuda.synchronize()\n",
    "someone else's cuda": "import jax\nfrom caffe2.proto import caffe2_pb2\njax.cuda(1)\nx = caffe2_pb2.CUDA\n",
    "an enum": "from enum import Enum\n\nclass Kind(Enum):\n    CUDA = 'cuda_kind'\n    CPU = 'cpu'\n",
    "a flag": "import torch\n\nclass T:\n    def __init__(self, cuda):\n        self.cuda = cuda\n\n"
    "    def f(self):\n        return self.cuda and self.cuda.real\n",
    "the version": "import torch\nv = torch.version.cuda\n",
    "bytes": "import torch\na = b'cuda'\ntorch.device(a)\n",
    "star arguments": "import torch\n\ndef f(x, *args, **kwargs):\n    return x.to(*args, **kwargs)\n",
    "keyword that is not torch's": "import torch\n\ndef f(x):\n    return x.cuda(verbose=True)\n",
    "an item that other names ask for": 'import torch\n\ndef f(name, held):\n    held["cuda"] += 1\n    return held[name]\n',
    "environment in a text": 'import os\nos.system("CUDA_VISIBLE_DEVICES=0 python train.py")\n',
    "slices of other things": "def f(devices):\n    return devices[:4] == 'cuda'\n",
    "a Literal that selects a key": "from typing import Literal\n\ndef f(kind: Literal['cpu', 'cuda'] = 'cuda'):\n"
    "    return KERNELS[kind]\n",
    "a name that nothing binds": "x = torch.cuda.is_available()\n",
    "Horovod's module torch": "from horovod import torch as hvd\n\nhvd.cuda.is_available()\n",
    "keywords of a function of the program": "launch('a', CUDA_VISIBLE_DEVICES='0')\n",
    "assertion messages": 'import torch\nassert True, "cuda"\nraise ValueError("cuda")\n',
    "an if of its own for NPUs beside that for CUDA": "import torch\ndef load(state):\n    if torch.cuda.is_available():\n"
    "        put('CUDA', torch.cuda, state)\n    if is_torch_npu_available():\n"
    "        put('NPU', torch.npu, state)\n",
    "names of torch.cuda patched by those of the NPU": "import torch\nimport torch_npu\ntorch.cuda.graph = torch.npu.graph\n"
    "torch.cuda.is_available = lambda: False\n",
}
# What else changes: before and after.
CHANGED = {
    "guarded import of torch_npu": (
        "try:\n    import torch_npu\nexcept ImportError:\n    pass\nimport torch\ntorch.cuda.init()\n",
        "try:\n    import torch_npu\nexcept ImportError:\n    pass\nimport torch\ntorch.npu.init()\n",
    ),
    "semicolon": (
        "import os; import torch; x = torch.cuda.device_count()\n",
        "import os; import torch; import torch_npu; x = torch.npu.device_count()\n",
    ),
    "one-line try": (
        "try: import torch\nexcept ImportError: torch = None\nif torch: torch.cuda.init()\n",
        "try: import torch; import torch_npu\nexcept ImportError: torch = None\nif torch: torch.npu.init()\n",
    ),
    "torch import is the last line": (
        "def f():\n    return torch.cuda.device_count()\nimport torch",
        "def f():\n    return torch.npu.device_count()\nimport torch\nimport torch_npu",
    ),
    "tabs": (
        "def f():\n\timport torch\n\treturn torch.cuda.device_count()\n",
        "def f():\n\timport torch\n\timport torch_npu\n\treturn torch.npu.device_count()\n",
    ),
    "type checking only": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n\ndef f():\n"
        "    import torch\n    return torch.cuda.device_count()\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n\ndef f():\n"
        "    import torch\n    import torch_npu\n    return torch.npu.device_count()\n",
    ),
    "already there": (
        "import torch\nimport torch_npu\ntorch.cuda.init()\n",
        "import torch\nimport torch_npu\ntorch.npu.init()\n",
    ),
    "from-import in parentheses": (
        "from torch.cuda import (  # device\n    Event,\n    Stream,  # streams\n)\n",
        "from torch_npu.npu import (  # device\n    Event,\n    Stream,  # streams\n)\n",
    ),
    "star import": (
        "from torch.cuda import *\nsynchronize()\n",
        "from torch_npu.npu import *\nsynchronize()\n",
    ),
    "plain module import": (
        "import torch.cuda\ntorch.cuda.init()\n",
        "import torch.cuda\nimport torch_npu\ntorch.npu.init()\n",
    ),
    "several plain imports": (
        "import torch.cuda as tc, os\ntc.init()\n",
        "import torch_npu.npu as tc, os\ntc.init()\n",
    ),
    "renamed through an import": (
        "from torch import cuda\ng = cuda.CUDAGraph()\n",
        "from torch_npu import npu as cuda\ng = cuda.NPUGraph()\n",
    ),
    "renamed name imported": (
        "from torch.cuda import CUDAGraph\ng = CUDAGraph()\n",
        "from torch_npu.npu import NPUGraph as CUDAGraph\ng = CUDAGraph()\n",
    ),
    "typer": (
        'import typer\n\ndef main(device: str = typer.Option("cuda", help="cuda or cpu")): pass\n',
        'import typer\n\ndef main(device: str = typer.Option("npu", help="cuda or cpu")): pass\n',
    ),
    "environment by bare name": (
        'from os import environ, getenv\nenviron["CUDA_VISIBLE_DEVICES"] = getenv("X")\n',
        'from os import environ, getenv\nenviron["ASCEND_RT_VISIBLE_DEVICES"] = getenv("X")\n',
    ),
    "trailing comma and comment": (
        "import torch\ns = torch.amp.GradScaler(\n    init_scale=2.0,  # small\n)\n",
        "import torch\nimport torch_npu\ns = torch.amp.GradScaler(\n"
        '    init_scale=2.0, device="npu",  # small\n)\n',
    ),
    "parentheses around the last argument": (
        "import torch.nn as nn\nm = nn.DataParallel((1))\n",
        "import torch.nn as nn\nimport torch_npu\nm = nn.DataParallel((1), device_ids=[0])\n",
    ),
    "device ids": (
        "import torch\nm = torch.nn.DataParallel(1, device_ids=[0, 1, 2])\n",
        "import torch\nimport torch_npu\nm = torch.nn.DataParallel(1, device_ids=[0])\n",
    ),
    "device ids by position": (
        "import torch\nm = torch.nn.DataParallel(1, list(range(4)))\n",
        "import torch\nimport torch_npu\nm = torch.nn.DataParallel(1, list(list(range(4)) or [0])[:1])\n",
    ),
    "patched through a module": (
        "from unittest import mock\nmock.patch('pkg.mod.torch.cuda.is_available')\n"
        "mock.patch(target='torch.cuda.is_available')\n",
        "from unittest import mock\nmock.patch('pkg.mod.torch.npu.is_available')\n"
        "mock.patch(target='torch_npu.npu.is_available')\n",
    ),
    "condition kept": (
        "import torch\n\ndef f(gpu):\n    return torch.autograd.profiler.profile(use_cuda=gpu)\n",
        "import torch\nimport torch_npu\n\ndef f(gpu):\n"
        '    return torch.autograd.profiler.profile(use_device="npu" if gpu else None)\n',
    ),
    "device slices": (
        "def f(device):\n    return device[:4] == 'cuda'\n",
        "def f(device):\n    return device[:3] == 'npu'\n",
    ),
    "torch that another module hands on": (
        "import helpers as h\nimport sys\nfrom helpers import torch as t\n"
        "a = h.torch.cuda.is_available(), t.cuda.synchronize()\n"
        "b = sys.modules['torch'].cuda.is_available()\n",
        "import helpers as h\nimport sys\nfrom helpers import torch as t\nimport torch_npu\n"
        "a = h.torch.npu.is_available(), t.npu.synchronize()\nb = sys.modules['torch'].npu.is_available()\n",
    ),
    "torch by a star": (
        "from helpers import *\n\nx = torch.cuda.is_available()\n",
        "from helpers import *\nimport torch_npu\n\nx = torch.npu.is_available()\n",
    ),
    "device ids that may be None": (
        "import torch\n\ndef f(m, ids):\n"
        "    return torch.nn.DataParallel(m, device_ids=None if m else ids)\n",
        "import torch\nimport torch_npu\n\ndef f(m, ids):\n"
        "    return torch.nn.DataParallel(m, device_ids=list((None if m else ids) or [0])[:1])\n",
    ),
    "properties in an f-string": (
        'import torch\np = torch.cuda.get_device_properties(0)\nprint(f"{p.major}.{p.minor}")\n',
        "import torch\nimport torch_npu\np = torch.npu.get_device_properties(0)\n"
        "print(f\"{(getattr(p, 'major', None) or 8)}.{(getattr(p, 'minor', None) or 0)}\")\n",
    ),
    "an attribute by its name: of options, of a parameter": (
        'import torch\ndef f(args, param):\n    return getattr(args, "cuda") and getattr(param, "is_cuda")\n',
        "import torch\nimport torch_npu\ndef f(args, param):\n"
        '    return getattr(args, "cuda") and getattr(param, "is_npu")\n',
    ),
    "another if that speaks of NPUs, about something else": (
        "import torch\nimport torch_npu\nif torch.cuda.is_available():\n    torch.cuda.init()\n"
        "if is_npu_slow():\n    print()\n",
        "import torch\nimport torch_npu\nif torch.npu.is_available():\n    torch.npu.init()\n"
        "if is_npu_slow():\n    print()\n",
    ),
}

# Code with a case of its own for NPUs, which is left.
OWN_CASES = {
    "elif": "if torch.cuda.is_available():\n    torch.cuda.empty_cache()\nelif is_npu_available():\n    pass\n",
    "else": "if HAS_NPU:\n    pass\nelse:\n    torch.cuda.empty_cache()\n",
    "return": "def f():\n    if is_npu_available():\n        return 1\n    return torch.cuda.device_count()\n",
    "expression": "b = 'hccl' if HAS_NPU else 'nccl'\n",
    "inner chain": "if old:\n    pass\nelse:\n    x = 1\n    if d.type == 'cuda':\n        a()\n    elif d.type == 'npu':\n        b()\n",
    "backends": "SUPPORTED = ['nccl', 'gloo', 'hccl']\n",
}


def after_of(before: str) -> str:
    """What becomes of a text that names a device."""
    return before.replace("cuda", "npu").replace("import torch\n", "import torch\nimport torch_npu\n", 1)


CASES = {
    **{name: (text, after_of(text)) for name, text in MOVED.items()},
    **{name: (text, text) for name, text in LEFT.items()},
    **{name: (f"import torch\n{text}", f"import torch\n{text}") for name, text in OWN_CASES.items()},
    **CHANGED,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_case(before: str, after: str, newline: str) -> None:
    assert migrated(before.replace("\n", newline)) == after.replace("\n", newline)


def test_of_several_newlines_the_most_common_one_is_used() -> None:
    text = "# first\nimport torch\r\n\r\ntorch.cuda.synchronize()\r\n"
    assert migrated(text) == "# first\nimport torch\r\nimport torch_npu\r\n\r\ntorch.npu.synchronize()\r\n"


@pytest.mark.skipif(sys.version_info < (3, 10), reason="match needs Python 3.10")
def test_match_cases() -> None:
    before = dedent(
        """\
        import torch

        def f(x):
            match x.device.type:
                case "cuda" | "xpu":
                    return torch.cuda.device_count()
                case "cpu":
                    return 1
        """
    )
    after = before.replace('"cuda"', '"npu"').replace("torch.cuda", "torch.npu")
    assert migrated(before) == after.replace("import torch\n", "import torch\nimport torch_npu\n")


def test_class_in_another_file_moves_with_its_calls() -> None:
    batch = "class Batch:\n    def cuda(self):\n        self.x = self.x.cuda()\n        return self\n"
    assert migrated("from batch import Batch\nb = Batch().cuda()\n", others=(batch,)).endswith(
        "b = Batch().npu()\n"
    )


def test_call_that_may_mean_an_unrelated_class_is_reported() -> None:
    info = "class Info:\n    def cuda(self):\n        return '12.4'\n"
    text = "from other0 import Info\n\ndef show(thing):\n    return thing.cuda()\n"
    result = migrate(text, others=(info,))
    assert result.text is None
    assert [(f.code, f.line, f.fixed) for f in result.findings] == [("NPU111", 4, False)]
    assert "Info in other0.py" in result.findings[0].message


def test_safe_only_leaves_unsafe_fixes_and_reports_them() -> None:
    text = 'import torch\n\ndef name(i, device="cuda"):\n    return torch.cuda.get_device_name(i)\n'
    result = migrate(text, safe_only=True)
    assert result.text is not None
    assert 'device="cuda"' in result.text
    assert "torch.npu.get_device_name" in result.text
    [left] = [finding for finding in result.findings if not finding.fixed]
    assert (left.code, left.line, left.safety) == ("NPU122", 3, "unsafe")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import torch\nprint torch.cuda\n", "Python 2"),
        ("import torch\nx = torch.cuda(\n", "line 2"),
        ("import torch.cuda\0\n", "NUL"),
    ],
    ids=["python2", "unclosed", "nul"],
)
def test_what_cannot_be_parsed_is_left_with_a_reason(text: str, reason: str) -> None:
    result = migrate(text)
    assert result.text is None
    assert reason in result.skipped
    assert "\n" not in result.skipped


@pytest.mark.parametrize("opening", ["1 + ", "(", "-", "f("], ids=["sum", "nested", "minus", "calls"])
def test_very_deep_expressions_are_migrated_or_left_with_a_reason(opening: str) -> None:
    closing = ")" if "(" in opening else ""
    text = "import torch\nx = " + opening * 20_000 + "torch.cuda" + closing * 20_000 + "\n"
    result = migrate(text)
    assert bool(result.skipped) != bool(result.findings)
    assert "internal error" not in result.skipped


def test_transfer_mode_only_touches_entry_files() -> None:
    entry = 'import torch\n\nif __name__ == "__main__":\n    torch.cuda.init()\n'
    expected = entry.replace(
        "import torch\n", "import torch\nimport torch_npu\nfrom torch_npu.contrib import transfer_to_npu\n"
    )
    assert migrated(entry, transfer=True) == expected
    script = "import torch\n\ndef main():\n    pass\n\nmain()\n"
    assert "from torch_npu.contrib import transfer_to_npu\n" in migrated(script, transfer=True)
    assert migrated("import torch\ntorch.cuda.init()\n", transfer=True) == "import torch\ntorch.cuda.init()\n"


def test_name_that_the_database_does_not_know_is_reported_as_unknown() -> None:
    [finding] = migrate("import torch\ntorch.cuda.made_up_name(1)\n").findings
    assert (finding.status, finding.api, finding.fixed) == ("unknown", "torch.cuda.made_up_name", False)


def test_call_in_a_file_that_does_not_know_the_unrelated_class_moves_as_unsafe() -> None:
    info = "class Info:\n    def cuda(self):\n        return '12.4'\n"
    text = "import torch\n\ndef show(thing):\n    return thing.cuda()\n"
    [change] = [f for f in migrate(text, others=(info,)).findings if f.code == "NPU111"]
    assert (change.fixed, change.safety) == (True, "unsafe")


def test_torchscript_gets_forms_that_it_compiles() -> None:
    before = "import torch\n\n@torch.jit.script\ndef f(x):\n    if x.is_cuda:\n        return x.cuda()\n    return x\n"
    after = migrated(before)
    assert 'if x.device.type == "npu":' in after
    assert 'x.to("npu")' in after


def test_only_the_import_rule_s_exclusion_keeps_the_import_away() -> None:
    text = "import torch\ntorch.cuda.init()\n"
    assert migrated(text, select=("NPU101",)) == "import torch\nimport torch_npu\ntorch.npu.init()\n"
    assert migrated(text, ignore=("NPU901",)) == "import torch\ntorch.npu.init()\n"


def test_lazy_global_import() -> None:
    before = "def load():\n    global torch\n    import torch\n    torch.cuda.init()\n\ndef use():\n    return torch.cuda.device_count()\n"
    after = migrated(before)
    assert after.count("torch.npu") == 2
    assert after.count("import torch_npu") == 1


def test_use_that_no_import_of_torch_serves_gets_one_at_the_top() -> None:
    before = "import os\n\ndef f():\n    import torch\n    return torch.cuda.device_count()\n\ndef g(x):\n    return x.cuda()\n"
    assert migrated(before).startswith("import os\nimport torch_npu\n")


def test_module_in_an_attribute_is_reported() -> None:
    text = "class T:\n    def f(self):\n        self.torch.cuda.synchronize()\n"
    [finding] = migrate(text).findings
    assert (finding.code, finding.line, finding.fixed) == ("NPU101", 3, False)
    assert "torch.npu.synchronize" in finding.advice


def test_choices_that_have_the_backend_of_npus_stay() -> None:
    text = """
from dataclasses import dataclass, field
import torch.distributed as dist
@dataclass
class Options:
    ddp_backend: str = field(default=None, metadata={"choices": ["nccl", "gloo", "hccl"]})
"""
    assert migrated(text) == text
    other = text.replace(', "hccl"', "")
    assert '["hccl", "gloo"]' in migrated(other)


def test_a_mask_that_is_made_from_itself() -> None:
    text = """
import torch
def keep(boxes: torch.Tensor, scores: torch.Tensor):
    keep_mask = torch.ones_like(scores)
    keep_mask = keep_mask & (scores > 0)
    other_mask = keep_mask
    other_mask = other_mask & keep_mask
    return boxes[keep_mask], boxes[other_mask]
"""
    facts = merge_facts([scan_file("a.py", text)])
    result = inspect_text(engine("2.6", select=("NPU752",)), "a.py", text, facts)
    assert (result.skipped, [f.line for f in result.findings]) == ("", [8])


def test_an_analysis_follows_getattr() -> None:
    text = "import torch\nvalue = getattr(torch, 'fft').unknown\nx = torch.cdist(1, 2)\n"
    facts = merge_facts([scan_file("a.py", text)])
    result = inspect_text(engine("2.6", select=("NPU5",)), "a.py", text, facts)
    assert result.skipped == ""
    assert [finding.api for finding in result.findings] == ["torch.cdist"]


def test_a_package_imports_itself() -> None:
    text = "from xformers.ops import fmha\nimport flash_attn\n"
    for name, codes in (
        ("xformers/ops/a.py", ["NPU603"]),
        ("src/xformers/a.py", ["NPU603"]),
        ("models/xformers/a.py", ["NPU604", "NPU603"]),
        ("train.py", ["NPU604", "NPU603"]),
    ):
        result = migrate_text(engine("2.6"), name, text, merge_facts([]))
        assert [finding.code for finding in result.findings] == codes, name


def test_a_package_of_the_project_is_no_library() -> None:
    text = "import flash_attn\nm = importlib.import_module('flash_attn.ops')\n"
    files = ("flash_attn/__init__.py", "flash_attn/ops/__init__.py", "train.py", "tests/test_a.py")
    for folder in ("", "src/", "inner/", "inner/src/"):
        project = merge_facts([], files=[folder + file for file in files])
        for name in ("inner/train.py", "inner/tests/test_a.py"):
            assert not migrate_text(engine("2.6"), name, text, project).findings, folder
    vendored = merge_facts([], files=["third_party/flash_attn/flash_attn/__init__.py"])
    for name, count in (
        ("train.py", 2),
        ("third_party/flash_attn/tests/test_a.py", 0),
        ("third_party/a.py", 2),
    ):
        assert len(migrate_text(engine("2.6"), name, text, vendored).findings) == count, name


STOPPING = [
    "if torch.version.cuda is None:\n    raise RuntimeError\n",
    "if not torch.version.cuda:\n    sys.exit(1)\n",
    "if torch.version.cuda is None or sys.argv:\n    raise RuntimeError\n",
    "if torch.version.cuda:\n    pass\nelse:\n    raise RuntimeError\n",
    "assert torch.version.cuda is not None\n",
    "assert torch.backends.cudnn.is_available()\n",
    "major = int(torch.version.cuda.split('.')[0])\n",
    "new = parse(torch.version.cuda)\n",
    "new = torch.backends.cudnn.version() >= 7000\n",
]


GOING_ON = [
    "if torch.version.cuda is None and sys.argv:\n    raise RuntimeError\n",
    "if torch.version.cuda:\n    raise RuntimeError\n",
    "if torch.version.cuda is None:\n    print('no CUDA')\n",
    "assert sys.argv, torch.version.cuda\n",
    "old = torch.version.cuda == '11'\n",
]


@pytest.mark.parametrize("text", [*STOPPING, *GOING_ON])
def test_what_stops_where_a_value_is_none_is_a_blocker(text: str) -> None:
    severities = [found.severity for found in migrate(f"import sys, torch\n{text}").findings]
    assert severities == ["blocker"] if text in STOPPING else {*severities} <= {"info", "warning"}


def test_the_import_that_a_migration_adds_is_no_sign_of_torch() -> None:
    """A string that stays in a file without torch stays when the file is migrated again."""
    text = "def setup(options, x):\n    options.use('nccl').sort()\n    return x.cuda()\n"
    assert "'nccl'" in migrated(text)


# A text, and the code, line and severity of what is found in it.
REPORTED = [
    (
        "from importlib.util import find_spec\nfound = find_spec('xformers')\nimport xformers\n",
        ["NPU604:2 info", "NPU604:3 blocker"],
    ),
    (
        "from torch import _C\ndef set_state(state):\n"
        "    if hasattr(_C, '_cuda_setRNGState') and callable(_C._cuda_setRNGState):\n"
        "        _C._cuda_setRNGState(state)\n    _C._cuda_hasPrimaryContext(0)\n",
        ["NPU106:3 info", "NPU106:4 info", "NPU106:5 error"],
    ),
    ("import triton\nimport triton.language as tl\n", ["NPU606:1 warning"]),
    (
        "import torch\nif torch.version.cuda:\n    print(torch.version.cuda.split('.'))\n"
        "old = torch.version.cuda is not None and torch.version.cuda < '11'\n"
        "new = torch.version.cuda >= '12'\n",
        ["NPU515:2 info", "NPU515:3 info", "NPU515:4 info", "NPU515:4 info", "NPU515:5 blocker"],
    ),
    # The method cuda as a value.
    (
        "import torch\ndef f(x, items):\n    move = x.cuda\n    return [move() for _ in items]\n",
        ["NPU111:3 warning"],
    ),
    ("import torch\ndef f(module):\n    return {'move': module.cuda}\n", ["NPU111:3 warning"]),
    (
        "import torch\ndef f(self):\n    return [self.encoder.cuda, self.net_2.cuda]\n",
        ["NPU111:3 warning", "NPU111:3 warning"],
    ),
    (
        "import torch\ndef f(build):\n    found = build.cuda\n    return {'cuda': build.cuda, 'found': found}\n",
        [],
    ),
    ("import torch\ndef f(args, run):\n    use = args.cuda\n    return run(use)\n", []),
    ("import torch\ndef f(runner):\n    cuda = runner.cuda\n    if cuda:\n        runner.start(cuda)\n", []),
    ("import torch\nclass M:\n    def __init__(self, model):\n        self.cuda = model.cuda\n", []),
]


@pytest.mark.parametrize(("text", "expected"), REPORTED)
def test_what_is_only_reported(text: str, expected: list[str]) -> None:
    left = [item for item in migrate(text).findings if not item.fixed]
    assert [f"{item.code}:{item.line} {item.severity}" for item in left] == expected


def test_lines_of_later_passes_are_the_input_s() -> None:
    text = "import torch\n\n\ntorch.set_default_tensor_type(torch.cuda.FloatTensor)\nx = 1\nx.cuda()\n"
    lines = {finding.code: finding.line for finding in migrate(text).findings}
    assert (lines["NPU151"], lines["NPU111"]) == (4, 6)


def test_an_api_behind_an_import_call() -> None:
    result = migrate('import torch\n\nz = __import__("torch").geqrf(x)\n')
    assert (result.skipped, [finding.api for finding in result.findings]) == ("", ["torch.geqrf"])


def test_out_of_memory_error_stays_on_versions_without_the_new_name() -> None:
    text = "import torch\ntry:\n    pass\nexcept torch.cuda.OutOfMemoryError:\n    pass\n"
    assert migrated(text, version="2.1") == text


def test_a_module_that_is_handed_in_is_an_unsafe_fix() -> None:
    text = "def f(torch):\n    torch.cuda.synchronize()\n"
    assert "torch.npu.synchronize" in migrated(text)
    assert migrate(text, safe_only=True).text is None
