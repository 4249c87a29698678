"""``migrate --replace-unsupported``: what is written, which files come along, and what stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.results import python_files, rows, write

OPTIONS = ("-v", "2.6", "--replace-unsupported")
PROGRAM = "import torch\n\n\ndef size(x: torch.Tensor):\n    return torch.logdet(x), torch.mode(x, -1)\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_functions_that_are_called_come_along(npumigrate, here: Path) -> None:
    write(here / "p", {"acme/__init__.py": "", "acme/net.py": PROGRAM, "run.py": "from acme import net\n"})
    done = npumigrate("p", "-o", "out", *OPTIONS)
    assert done.code == 0, done.err
    files = python_files(here / "out" / "p_msft")
    assert files["acme/net.py"] == (
        "import torch\nfrom acme import ascend_function\n\n\ndef size(x: torch.Tensor):\n"
        "    return ascend_function.logdet(x), ascend_function.mode(x, -1)\n"
    )
    added = {name.rpartition("/")[2] for name in files if name.startswith("acme/ascend_function/")}
    assert added == {"__init__.py", "_elimination.py", "logdet.py", "mode.py", "slogdet.py"}
    assert files["run.py"] == "from acme import net\n"
    reports = here / "out/p_msft/migration_report"
    changes = rows(reports / "change_list.csv")
    assert [(row["Rule"], row["Safety"]) for row in changes] == [
        ("NPU550", "safe"),
        *[("NPU550", "unsafe")] * 2,
    ]
    assert "torch.mode" not in (reports / "unsupported_api.csv").read_text(encoding="utf-8-sig")
    summary = json.loads((reports / "summary.json").read_text())
    assert summary["options"]["replace_unsupported"] is True


def test_a_second_migration_adds_what_is_new_and_nothing_else(npumigrate, here: Path) -> None:
    write(here / "p", {"net.py": PROGRAM})
    npumigrate("p", "-o", "one", *OPTIONS)
    first = python_files(here / "one" / "p_msft")
    npumigrate("one/p_msft", "-o", "two", *OPTIONS)
    assert python_files(here / "two" / "p_msft_msft") == first
    lint = npumigrate("lint", "one/p_msft", "-v", "2.6", "--extend-select", "NPU5", "--no-cache")
    assert "ascend_function/" not in lint.out
    (here / "one/p_msft/new.py").write_text("import torch\n\nx = torch.digamma(torch.ones(2))\n")
    npumigrate("one/p_msft", "-o", "three", *OPTIONS)
    third = python_files(here / "three" / "p_msft_msft")
    assert "from .digamma import digamma\n" in third["ascend_function/__init__.py"]
    assert "from .mode import mode\n" in third["ascend_function/__init__.py"]
    assert third["ascend_function/mode.py"] == first["ascend_function/mode.py"]


def test_a_module_of_the_users_with_that_name_stays(npumigrate, here: Path) -> None:
    own = "import torch\n\nvalue = torch.logdet(torch.eye(2))\n"
    write(here / "p", {"ascend_function/__init__.py": own, "net.py": PROGRAM})
    npumigrate("p", "-o", "out", *OPTIONS)
    files = python_files(here / "out" / "p_msft")
    assert "import ascend_function_2\n" in files["net.py"]
    assert "ascend_function_2.logdet(x)" in files["net.py"]
    assert files["ascend_function/__init__.py"].startswith("import torch\nfrom ascend_function import")
    assert "ascend_function_2/mode.py" in files


def test_without_the_option_nothing_is_written(npumigrate, here: Path) -> None:
    write(here / "p", {"net.py": PROGRAM})
    npumigrate("p", "-o", "out", "-v", "2.6", "--extend-select", "NPU550")
    assert python_files(here / "out" / "p_msft") == {"net.py": PROGRAM}
    lint = npumigrate("lint", "p", "-v", "2.6", "--select", "NPU55", "--no-cache")
    assert lint.out.count("NPU550 warning:") == 2
    refused = npumigrate("p", "-o", "more", *OPTIONS, "--safe-only")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--replace-unsupported and --safe-only exclude each other" in refused.err
