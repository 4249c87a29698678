"""``migrate --replace-unsupported``: what is written, which files come along, and what stays."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OPTIONS = ("-v", "2.6", "--replace-unsupported")
PROGRAM = "import torch\n\n\ndef size(x: torch.Tensor):\n    return torch.logdet(x), torch.mode(x, -1)\n"


def npumigrate(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "migrator", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def project(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def python_files(folder: Path) -> dict[str, str]:
    found = sorted(folder.rglob("*.py"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def test_the_functions_that_are_called_come_along(tmp_path: Path) -> None:
    project(
        tmp_path / "p", {"acme/__init__.py": "", "acme/net.py": PROGRAM, "run.py": "from acme import net\n"}
    )
    done = npumigrate("p", "-o", "out", *OPTIONS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = python_files(tmp_path / "out" / "p_msft")
    assert files["acme/net.py"] == (
        "import torch\nfrom acme import ascend_function\n\n\ndef size(x: torch.Tensor):\n"
        "    return ascend_function.logdet(x), ascend_function.mode(x, -1)\n"
    )
    added = {name.rpartition("/")[2] for name in files if name.startswith("acme/ascend_function/")}
    assert added == {"__init__.py", "_elimination.py", "logdet.py", "mode.py", "slogdet.py"}
    assert files["run.py"] == "from acme import net\n"
    report = (tmp_path / "out/p_msft/migration_report/change_list.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(report.splitlines()))
    assert [(row["Rule"], row["Safety"]) for row in rows] == [("NPU550", "safe"), *[("NPU550", "unsafe")] * 2]
    unsupported = (tmp_path / "out/p_msft/migration_report/unsupported_api.csv").read_text(
        encoding="utf-8-sig"
    )
    assert "torch.mode" not in unsupported
    summary = json.loads((tmp_path / "out/p_msft/migration_report/summary.json").read_text())
    assert summary["options"]["replace_unsupported"] is True


def test_a_second_migration_adds_what_is_new_and_nothing_else(tmp_path: Path) -> None:
    project(tmp_path / "p", {"net.py": PROGRAM})
    npumigrate("p", "-o", "one", *OPTIONS, cwd=tmp_path)
    first = python_files(tmp_path / "one" / "p_msft")
    npumigrate("one/p_msft", "-o", "two", *OPTIONS, cwd=tmp_path)
    assert python_files(tmp_path / "two" / "p_msft_msft") == first
    lint = npumigrate(
        "lint", "one/p_msft", "-v", "2.6", "--extend-select", "NPU5", "--no-cache", cwd=tmp_path
    )
    assert "ascend_function/" not in lint.stdout
    (tmp_path / "one/p_msft/new.py").write_text("import torch\n\nx = torch.digamma(torch.ones(2))\n")
    npumigrate("one/p_msft", "-o", "three", *OPTIONS, cwd=tmp_path)
    third = python_files(tmp_path / "three" / "p_msft_msft")
    assert "from .digamma import digamma\n" in third["ascend_function/__init__.py"]
    assert "from .mode import mode\n" in third["ascend_function/__init__.py"]
    assert third["ascend_function/mode.py"] == first["ascend_function/mode.py"]


def test_a_module_of_the_users_with_that_name_stays(tmp_path: Path) -> None:
    own = "import torch\n\nvalue = torch.logdet(torch.eye(2))\n"
    project(tmp_path / "p", {"ascend_function/__init__.py": own, "net.py": PROGRAM})
    npumigrate("p", "-o", "out", *OPTIONS, cwd=tmp_path)
    files = python_files(tmp_path / "out" / "p_msft")
    assert "import ascend_function_2\n" in files["net.py"]
    assert "ascend_function_2.logdet(x)" in files["net.py"]
    assert files["ascend_function/__init__.py"].startswith("import torch\nfrom ascend_function import")
    assert "ascend_function_2/mode.py" in files


def test_without_the_option_nothing_is_written(tmp_path: Path) -> None:
    project(tmp_path / "p", {"net.py": PROGRAM})
    npumigrate("p", "-o", "out", "-v", "2.6", "--extend-select", "NPU550", cwd=tmp_path)
    assert python_files(tmp_path / "out" / "p_msft") == {"net.py": PROGRAM}
    lint = npumigrate("lint", "p", "-v", "2.6", "--select", "NPU55", "--no-cache", cwd=tmp_path)
    assert lint.stdout.count("NPU550 warning:") == 2
    refused = npumigrate("p", "-o", "more", *OPTIONS, "--safe-only", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--replace-unsupported and --safe-only exclude each other" in refused.stderr
