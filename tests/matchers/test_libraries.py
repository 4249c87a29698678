"""Imports of libraries that are made for CUDA."""

from __future__ import annotations

import pytest

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine, migrate


@pytest.mark.parametrize(
    ("text", "severity", "goes_on"),
    [
        ("import spconv", "blocker", False),
        ("def f():\n    import spconv", "error", False),
        ("try:\n    import spconv\nexcept ImportError:\n    spconv = None", "warning", True),
        ("try:\n    import spconv\nexcept (OSError, ModuleNotFoundError):\n    pass", "warning", True),
        ("try:\n    if True:\n        import spconv\nexcept:\n    pass", "warning", True),
        ("try:\n    import apex\nexcept Exception:\n    pass", "info", True),
        ("try:\n    import spconv\nexcept OSError:\n    pass", "error", False),
        ("try:\n    import spconv\nexcept ImportError:\n    ok = 0\nif ok:\n    spconv.f()", "warning", True),
        ("try:\n    import spconv\nexcept ImportError:\n    spconv = None\nspconv.f()", "blocker", False),
        (
            "try:\n    import spconv\nexcept ImportError:\n    spconv = None\ndef f():\n    spconv.f()",
            "warning",
            False,
        ),
        (
            "try:\n    import spconv\nexcept ImportError:\n    import mine as spconv\nspconv.f()",
            "warning",
            True,
        ),
        (
            "try:\n    import spconv\nexcept ImportError as e:\n    raise RuntimeError() from e",
            "blocker",
            False,
        ),
        (
            "import sys\ntry:\n    import spconv\nexcept ImportError:\n    print(1)\n    sys.exit(1)",
            "blocker",
            False,
        ),
        ("from contextlib import suppress\nwith suppress(ImportError):\n    import spconv", "warning", True),
        ("from contextlib import suppress\nwith suppress(OSError):\n    import spconv", "error", False),
        ("if find('spconv'):\n    import spconv", "warning", False),
        ("if HAS_SPCONV:\n    import spconv", "warning", False),
        ("if HAS_TORCH_2:\n    import spconv", "error", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import spconv", "info", False),
        ("try:\n    import a\nexcept ImportError:\n    import spconv", "error", False),
        ("try:\n    def f():\n        import spconv\nexcept ImportError:\n    pass", "error", False),
    ],
)
def test_an_import_that_may_fail_is_less_grave(text: str, severity: str, goes_on: bool) -> None:
    (finding,) = migrate(text).findings
    assert finding.severity == severity
    assert ("continues" in finding.message) == goes_on


@pytest.mark.parametrize(("files", "severity"), [(10, "warning"), (11, "info"), (0, "warning")])
def test_few_files_of_another_framework_are_no_warning(files: int, severity: str) -> None:
    names = ["adapter.py", *(f"a{number}.py" for number in range(1, files))] if files else []
    text = "import jax\nprint(jax.devices('cuda'))\n"
    project = merge_facts([scan_file("adapter.py", text)], files=names)
    (finding,) = migrate_text(engine("2.6"), "adapter.py", text, project).findings
    assert (finding.code, finding.severity) == ("NPU661", severity)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("tl.store(x, tl.exp(tl.load(x)))", "; nothing in it is known to need a change for triton-ascend"),
        (
            "libdevice.tanh(tl.atomic_add(x, 1))",
            ", which needs changes for triton-ascend: it uses libdevice.tanh, tl.atomic_add",
        ),
        (
            "tl.atomic_add(x, tl.inline_asm_elementwise('', '=r', [x], tl.int32, True, 1))",
            ", which triton-ascend does not compile: it uses tl.inline_asm_elementwise",
        ),
    ],
)
def test_each_triton_kernel_has_a_verdict(body: str, verdict: str) -> None:
    text = (
        "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
        f"@triton.jit\ndef kernel(x):\n    {body}\n"
    )
    told = [each.message for each in migrate(text).findings if each.code == "NPU654"]
    assert told == [f"kernel is a triton.jit kernel{verdict}"]
