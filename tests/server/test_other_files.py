"""Files that are no Python, and the commands that extensions of editors ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Editor

VERSION = {"version": "2.6"}


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [
        ("run.sh", "export CUDA_VISIBLE_DEVICES=0\n", ["NPU410"]),
        ("start", "#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=0\n", ["NPU410"]),
        ("job.yaml", "env:\n  CUDA_VISIBLE_DEVICES: 0\n", ["NPU410"]),
        ("Dockerfile", "FROM scratch\nENV CUDA_VISIBLE_DEVICES=0\n", ["NPU410"]),
        ("requirements.txt", "torch==2.6.0\n", ["NPU450"]),
    ],
)
def test_other_files_have_the_findings_of_lint(
    editor: Editor, name: str, text: str, codes: list[str]
) -> None:
    assert [item.code for item in editor.open(name, text)] == codes
    # What was put right is gone, though it is no Python.
    assert editor.change(name, "# nothing\n") == []
    assert editor.said == []


def test_fixes_and_comments_of_other_files(editor: Editor) -> None:
    editor.open("run.sh", "export CUDA_VISIBLE_DEVICES=0\n")
    fix, suppress, *_ = editor.actions("run.sh", 0)
    assert editor.applied("run.sh", fix) == "export ASCEND_RT_VISIBLE_DEVICES=0\n"
    assert editor.applied("run.sh", suppress).endswith("CUDA_VISIBLE_DEVICES=0  # noqa: NPU410\n")
    assert "ASCEND_RT_VISIBLE_DEVICES" in editor.hover("run.sh", 0, 10)
    editor.open("job.json", '{"env": {"CUDA_VISIBLE_DEVICES": "0"}}\n')
    assert not any("noqa" in action.title for action in editor.actions("job.json", 0))


def test_what_extensions_ask_for(editor: Editor, tmp_path: Path) -> None:
    editor.open("train.py", "import torch\nx = torch.ones(2).cuda()\nopen('x')\n")
    new = "import torch\nimport torch_npu\nx = torch.ones(2).npu()\nopen('x')\n"
    assert editor.command("npumigrate.server.migrated", editor.uri("train.py")) == new
    assert editor.command("npumigrate.server.migrated", editor.uri("other.py")) is None
    rule = editor.command("npumigrate.server.explained", editor.uri("train.py"), "NPU600")
    assert rule.startswith("# NPU600: ")
    assert editor.command("npumigrate.server.explained", editor.uri("train.py"), "NPU000") is None
    editor.change("train.py", "import torch\nx = torch.ones(2).cuda(\n")
    assert editor.command("npumigrate.server.migrated", editor.uri("train.py")) is None
