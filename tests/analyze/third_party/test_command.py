"""``npumigrate analyze -m third_party`` and ``--api-files``, as a user runs them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.project.operators.projects import NATIVE

LIBRARY = {
    **NATIVE,
    "lib/__init__.py": "from .ops import Scale, scale\n",
    "lib/ops.py": (
        "import torch\nfrom torch.autograd import Function\nfrom lib import _ext\n"
        "class ScaleFunction(Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return _ext.scale(x)\n"
        "scale = ScaleFunction.apply\n"
        "class Scale(torch.nn.Module):\n    def forward(self, x):\n        return scale(x)\n"
        "def option(x, fast):\n    return scale(x) if fast else x\n"
        "def moved(x):\n    return x.cuda()\n"
        "def _private(x):\n    return _ext.scale(x)\n"
        "def marked():\n    torch.cuda.temperature('x')\n"
    ),
    "tests/test_ops.py": "from lib import scale\ndef test_scale():\n    scale(1)\n",
}


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def names(file: Path) -> list[str]:
    return [row["API"] for row in rows(file)]


@pytest.fixture
def analysis(tmp_path: Path) -> Path:
    for name, text in LIBRARY.items():
        file = tmp_path / "lib-1.0" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    library, modes = str(tmp_path / "lib-1.0"), ("-v", "2.6", "-m", "third_party")
    assert run(["analyze", "-i", library, "-o", str(tmp_path), *modes, "-q"]) == 0
    return tmp_path / "lib-1.0_analysis"


def test_tables(analysis: Path) -> None:
    assert names(analysis / "cuda_op.csv") == [
        "lib.ops",
        "lib.ops.ScaleFunction",
        "lib.ops.ScaleFunction.forward",
        "lib.ops.Scale",
        "lib.ops.Scale.forward",
    ]
    assert names(analysis / "framework_unsupported_op.csv") == ["lib.ops.marked"]
    assert names(analysis / "unknown_op.csv") == ["lib.ops.option"]
    assert names(analysis / "migration_needed_op.csv") == ["lib.ops.moved"]
    full = rows(analysis / "full_unsupported_results.csv")
    assert len(full) == 8
    (scale,) = [row for row in full if row["API"] == "lib.ops.Scale"]
    assert scale["Chain"] == (
        "Scale.forward (lib/ops.py:11) -> ScaleFunction.forward (lib/ops.py:7) -> lib._ext.scale"
    )
    about = [scale[name] for name in ("Start Line", "End Line", "Kind", "Also")]
    assert about == ["9", "11", "class", "lib.Scale"]
    (option,) = [row for row in full if row["API"] == "lib.ops.option"]
    assert option["Condition"] == "fast (lib/ops.py:13)"


def analyse_user(tmp_path: Path, table: Path) -> int:
    (tmp_path / "user.py").write_text(
        "import lib\nfrom lib import scale as s\nfrom lib.ops import option, moved\n"
        "net = lib.Scale()\ny = s(option(moved(net(1)), True))\nz = lib.other.Scale()\n",
        encoding="utf-8",
    )
    given = ("-i", str(tmp_path / "user.py"), "-o", str(tmp_path), "-v", "2.6", "-q")
    return run(["analyze", *given, "--api-files", str(table)])


def test_a_project_that_uses_the_library(tmp_path: Path, analysis: Path) -> None:
    assert analyse_user(tmp_path, analysis / "full_unsupported_results.csv") == 0
    found = {
        (row["OP"], row["Start Line"], row["Rule"])
        for table in ("unsupported_api.csv", "unknown_api.csv")
        for row in rows(tmp_path / "user_analysis" / table)
    }
    assert found == {
        ("lib.Scale", "4", "NPU641"),
        ("lib.scale", "5", "NPU641"),
        ("lib.ops.option", "5", "NPU641"),
    }
    (scale,) = [r for r in rows(tmp_path / "user_analysis" / "unsupported_api.csv") if r["OP"] == "lib.Scale"]
    assert "reaches lib._ext.scale; by Scale.forward (lib/ops.py:11)" in scale["Tips"]


@pytest.mark.parametrize("content", ["", "File,Line\na,1\n", "\0", None])
def test_other_files_are_refused(
    tmp_path: Path, analysis: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    if content is not None:
        table.write_text(content, encoding="utf-8")
    assert analyse_user(tmp_path, table) == 2
    line = capsys.readouterr().err.strip()
    assert line.startswith(f"npumigrate: {table}")
    assert "\n" not in line
    assert not (tmp_path / "user_analysis").exists()


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "good.py").write_text("def f(x):\n    return x.cuda()\n", encoding="utf-8")
    (tmp_path / "lib" / "bad.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "lib" / "deep.py").write_text("x = " + "(" * 3000 + ")" * 3000, encoding="utf-8")
    arguments = ["analyze", "-i", str(tmp_path / "lib"), "-o", str(tmp_path), "-v", "2.6", "-q"]
    assert run([*arguments, "-m", "third_party"]) == 1
    table = rows(tmp_path / "lib_analysis" / "skipped_files.csv")
    assert [row["File"] for row in table] == ["bad.py", "deep.py"]
    assert names(tmp_path / "lib_analysis" / "migration_needed_op.csv") == ["good.f"]
    assert run([*arguments, "-m", "third_party,torch_apis", "--overwrite"]) == 1
    both = rows(tmp_path / "lib_analysis" / "skipped_files.csv")
    assert sorted(row["File"] for row in both) == sorted({row["File"] for row in both}), "each once"
