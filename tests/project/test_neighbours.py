"""What one file of a project has to know of the others: flags, compiled functions, what objects keep."""

from __future__ import annotations

from textwrap import dedent

import pytest

from migrator.findings.finding import Result
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine


def migrate(name: str, texts: dict[str, str], version: str = "2.6") -> Result:
    """Migrate one of the files of a project."""
    plain = {each: dedent(text) for each, text in texts.items()}
    project = merge_facts([scan_file(*item) for item in plain.items()])
    return migrate_text(engine(version), name, plain[name], project)


CONFIG = """
import torch
import torch.nn.functional as F
from packaging import version

_HAS_FUSED = hasattr(F, "scaled_dot_product_attention")
_NEW = version.parse(torch.__version__) >= version.parse("2.0")
_FAST = hasattr(F, "silu")
_EXPORTING = False

def use_fused(experimental=False):
    if not _HAS_FUSED or _EXPORTING:
        return False
    return True

def modern():
    return _NEW

def is_exporting():
    return _EXPORTING
"""
ATTENTION = """
import torch.nn.functional as F
from torch import nn
{imported}

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.fused = {flag}

    def forward(self, q, k, v):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v)
        return q @ k @ v
"""


@pytest.mark.parametrize(
    ("imported", "flag", "asked"),
    [
        ("from .config import use_fused", "use_fused()", True),
        ("from acme.config import use_fused as fused", "fused(experimental=True)", True),
        ("from acme import use_fused", "use_fused()", True),  # acme/__init__.py hands it on
        ("from . import config", "config.use_fused()", True),
        ("from .config import modern", "modern()", True),
        ("from .config import is_exporting", "is_exporting()", False),
        ("from .config import _FAST", "_FAST", False),
        ("from other.config import use_fused", "use_fused()", False),
    ],
)
def test_a_flag_of_another_file_guards(imported: str, flag: str, asked: bool) -> None:
    texts = {"acme/config.py": CONFIG, "acme/net.py": ATTENTION.format(imported=imported, flag=flag)}
    codes = {found.code for found in migrate("acme/net.py", texts, "1.11").findings}
    assert ("NPU530" not in codes) == asked


INSTALLED = """
from importlib.util import find_spec

def _is_package_available(name):
    return find_spec(name) is not None

def quantizer_there():
    return find_spec("bitsandbytes") is not None

def quantizes(least=None):
    exists = _is_package_available("bitsandbytes")
    if exists and least is not None:
        return True
    return exists

def attends():
    return find_spec("xformers") is not None
"""


@pytest.mark.parametrize(
    ("test", "statement", "asked"),
    [
        ("quantizer_there()", "import bitsandbytes", True),
        ("quantizes()", "from bitsandbytes.optim import AdamW8bit", True),
        ("attends()", "import bitsandbytes", False),
        ("is_bnb_available()", "import bitsandbytes as bnb", True),  # of another library
        ("is_bnb_available()", "import bitsandbytes", False),
        ("is_bnbx_available()", "import bitsandbytes as bnb", False),
    ],
)
def test_who_asks_first_whether_a_library_is_installed(test: str, statement: str, asked: bool) -> None:
    text = f"""
import torch
from .imports import attends, quantizer_there, quantizes
from elsewhere import is_bnb_available, is_bnbx_available

def optimizer(parameters):
    if {test}:
        {statement}
"""
    found = migrate("acme/net.py", {"acme/imports.py": INSTALLED, "acme/net.py": text}).findings
    assert [each.severity for each in found if each.code == "NPU605"] == ["info" if asked else "warning"]


HELPERS = """
import torch

def gate(x):
    return x * 2 if x.is_cuda else shift(x)

def shift(x):
    return x + torch.ones(2).cuda()

def place(x):
    return x.cuda() if x.is_cuda else x
"""
NET = """
import torch
from torch import nn
from .ops import gate

class Net(nn.Module):
    def forward(self, x):
        return gate(x)
"""


def test_what_torchscript_compiles_in_another_file() -> None:
    texts = {
        "acme/ops.py": HELPERS,
        "acme/net.py": NET,
        "run.py": "import torch\nm = torch.jit.script(Net())\n",
    }
    text = migrate("acme/ops.py", texts).text or ""
    assert 'x * 2 if x.device.type == "npu" else shift(x)' in text
    assert 'torch.ones(2).to("npu")' in text
    assert "x.npu() if x.is_npu else x" in text
    assert "x * 2 if x.is_npu" in (migrate("acme/ops.py", {**texts, "run.py": ""}).text or "")


@pytest.mark.parametrize(
    "caller",
    [
        "import torch\nfrom acme.ops import gate\n\n@torch.jit.script\ndef f(x):\n    return gate(x)\n",
        "import torch\nfrom acme.ops import gate\nf = torch.jit.script(gate)\n",
        "import torch\nfrom acme import ops\n\n@torch.jit.script\ndef f(x):\n    return ops.gate(x)\n",
    ],
)
def test_what_scripts_of_another_file_call(caller: str) -> None:
    text = migrate("acme/ops.py", {"acme/ops.py": HELPERS, "run.py": caller}).text or ""
    assert 'x * 2 if x.device.type == "npu" else shift(x)' in text


METERS = """
import torch

class Meter:
    def __init__(self):
        self.count = torch.zeros(1, dtype=torch.float64)
        self.value = torch.zeros(1)
"""
SYNC = """
import torch.distributed as dist
{imported}

def sync(meters):
    for meter in meters:
        dist.all_reduce(meter.{attribute})
"""


@pytest.mark.parametrize(
    ("imported", "attribute", "severities"),
    [
        ("from meters import Meter", "count", ["error"]),
        ("", "count", ["warning"]),
        ("from meters import Meter", "value", []),
        ("from meters import Meter", "other", []),
    ],
)
def test_float64_that_an_object_of_another_file_keeps(
    imported: str, attribute: str, severities: list[str]
) -> None:
    texts = {"meters.py": METERS, "sync.py": SYNC.format(imported=imported, attribute=attribute)}
    found = migrate("sync.py", texts).findings
    assert [each.severity for each in found if each.code == "NPU148"] == severities
