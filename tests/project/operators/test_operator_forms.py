"""CUDA operators beside which a file has the same in torch's operators."""

from __future__ import annotations

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from tests.checking import load_pack, migrate_text
from tests.project.operators.projects import LAUNCHER, project

BINDING = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale_cuda); }\n'
BUILDS = {
    "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
    'x = CUDAExtension("acme_ops", ["csrc/bind.cpp", "csrc/scale.cu"])\n',
    "csrc/bind.cpp": BINDING,
    "csrc/scale.cu": LAUNCHER,
}
IMPORT = "import acme_ops as ops\n"
OPERATOR = (
    "class Scale(Function):\n    @staticmethod\n    def forward(ctx, x, factor, step=64):\n"
    "        return ops.scale(x, factor, step)\n\n\n"
)
FORM = "def scale_core_pytorch(x, factor):\n    return x * factor\n"
TEXT = f"from torch.autograd import Function\n{IMPORT}\n\n{OPERATOR}{FORM}"


def migrated(text: str) -> str:
    result = migrate_text(
        Rules(Settings(version="2.6.0"), load_pack),
        "ops.py",
        text,
        project({**BUILDS, "ops.py": text}),
        False,
    )
    assert result.skipped == ""
    return text if result.text is None else result.text


def test_what_is_not_given_has_the_value_that_forward_gives_it() -> None:
    text = migrated(TEXT.replace("scale_core_pytorch(x, factor)", "scale_core_pytorch(x, factor, step=1)"))
    assert "def apply(x, factor, step=64):" in text
    assert "return scale_core_pytorch(x=x, factor=factor, step=step)" in text


def test_an_import_that_stops_nothing_stays() -> None:
    guarded = TEXT.replace(IMPORT, f"try:\n    {IMPORT}except ImportError:\n    ops = None\n")
    assert f"    {IMPORT}" in migrated(guarded)
    raising = TEXT.replace(IMPORT, f"try:\n    {IMPORT}except ImportError:\n    raise\n")
    assert "try:\n    ops = None\nexcept" in migrated(raising)


def test_what_goes_on_without_the_module_may_use_it_elsewhere() -> None:
    guarded = TEXT.replace(IMPORT, f"try:\n    {IMPORT}except ImportError:\n    ops = None\n")
    text = migrated(f"{guarded}\n\ndef check():\n    if ops is None:\n        raise RuntimeError\n")
    assert "return scale_core_pytorch(x=x, factor=factor)" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("step=64", "step=64, mask=None"),
        ("step=64", "step=64, inverse=False"),
        ("scale_core_pytorch(x, factor)", "scale_core_pytorch(x, factor, mask)"),
        ("scale_core_pytorch", "scale_fast"),
        (FORM, f"{FORM}\n\ndef other(x):\n    return ops.scale(x, 1, 2)\n"),
        (FORM, f"{FORM}\n\ndef scale_ref(x):\n    return x\n"),
        ("    @staticmethod\n    def forward", "    def forward"),
        (IMPORT, "import numpy as ops\n"),
    ],
)
def test_where_it_is_not_sure_the_operator_stays(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert "def apply" not in migrated(text)
    assert "ops = None" not in migrated(text)
