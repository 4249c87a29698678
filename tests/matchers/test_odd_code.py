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
    "nested f-string": "import torch\nn = f\"{torch.device(f'cuda:{1}')}\"\n",
    "f-string over lines": 'import torch\nn = (f"é {1}"\n     f"{torch.cuda.device_count()}")\n',
}
# What else changes: before and after.
CHANGED = {
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
    "from-import in parentheses": (
        "from torch.cuda import (  # device\n    Event,\n    Stream,  # streams\n)\n",
        "from torch_npu.npu import (  # device\n    Event,\n    Stream,  # streams\n)\n",
    ),
    "several plain imports": (
        "import torch.cuda as tc, os\ntc.init()\n",
        "import torch_npu.npu as tc, os\ntc.init()\n",
    ),
    "trailing comma and comment": (
        "import torch\ns = torch.amp.GradScaler(\n    init_scale=2.0,  # small\n)\n",
        "import torch\nimport torch_npu\ns = torch.amp.GradScaler(\n"
        '    init_scale=2.0, device="npu",  # small\n)\n',
    ),
    "parentheses around the last argument": (
        "import torch\nx = torch.load((open('a.pth', 'rb')))\n",
        "import torch\nx = torch.load((open('a.pth', 'rb')), map_location=\"cpu\")\n",
    ),
}
CASES = {
    **{
        name: (
            text,
            text.replace("cuda", "npu").replace("import torch\n", "import torch\nimport torch_npu\n", 1),
        )
        for name, text in MOVED.items()
    },
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


def test_only_the_import_rule_s_exclusion_keeps_the_import_away() -> None:
    text = "import torch\ntorch.cuda.init()\n"
    assert migrated(text, select=("NPU101",)) == "import torch\nimport torch_npu\ntorch.npu.init()\n"
    assert migrated(text, ignore=("NPU901",)) == "import torch\ntorch.npu.init()\n"


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


def test_lines_of_later_passes_are_the_input_s() -> None:
    text = "import torch\n\n\ntorch.set_default_tensor_type(torch.cuda.FloatTensor)\nx = 1\nx.cuda()\n"
    lines = {finding.code: finding.line for finding in migrate(text).findings}
    assert (lines["NPU151"], lines["NPU111"]) == (4, 6)


def test_out_of_memory_error_stays_on_versions_without_the_new_name() -> None:
    text = "import torch\ntry:\n    pass\nexcept torch.cuda.OutOfMemoryError:\n    pass\n"
    assert migrated(text, version="2.1") == text


def test_a_module_that_is_handed_in_is_an_unsafe_fix() -> None:
    text = "def f(torch):\n    torch.cuda.synchronize()\n"
    assert "torch.npu.synchronize" in migrated(text)
    assert migrate(text, safe_only=True).text is None
