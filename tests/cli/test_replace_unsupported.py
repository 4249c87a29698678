"""``migrate --replace-unsupported``: what is written, which files come along, and what stays."""

from __future__ import annotations

import json
from pathlib import Path

from tests.reading import python_files, rows, write

REPLACE = "--replace-unsupported"
PROGRAM = "import torch\n\n\ndef size(x: torch.Tensor):\n    return torch.logdet(x), torch.mode(x, -1)\n"


def test_the_functions_that_are_called_come_along(migrate, tmp_path: Path) -> None:
    files = {"acme/__init__.py": "", "acme/net.py": PROGRAM, "run.py": "from acme import net\n"}
    answer, result = migrate(write(tmp_path / "p", files), REPLACE)
    assert answer.code == 0, answer.err
    files = python_files(result)
    assert files["acme/net.py"] == (
        "import torch\nfrom acme import ascend_function\n\n\ndef size(x: torch.Tensor):\n"
        "    return ascend_function.logdet(x), ascend_function.mode(x, -1)\n"
    )
    added = {name.rpartition("/")[2] for name in files if name.startswith("acme/ascend_function/")}
    assert added == {"__init__.py", "_elimination.py", "logdet.py", "mode.py", "slogdet.py"}
    assert files["run.py"] == "from acme import net\n"
    changes = [(row["Rule"], row["Safety"]) for row in rows(result, "change_list")]
    assert changes == [("NPU550", "safe"), *[("NPU550", "unsafe")] * 2]
    assert "torch.mode" not in {row["OP"] for row in rows(result, "unsupported_api")}
    summary = json.loads((result / "migration_report/summary.json").read_text())
    assert summary["options"]["replace_unsupported"] is True


def test_a_second_migration_adds_what_is_new_and_nothing_else(migrate, npumigrate, tmp_path: Path) -> None:
    _, one = migrate(write(tmp_path / "p", {"net.py": PROGRAM}), REPLACE)
    first = python_files(one)
    _, two = migrate(one, REPLACE, out="two")
    assert python_files(two) == first
    linted = npumigrate("lint", one, "-v", "2.6", "--extend-select", "NPU5", "--no-cache")
    assert "ascend_function/" not in linted.out
    write(one, {"new.py": "import torch\nfrom net import x\n\nx = torch.digamma(x)\n"})
    third = python_files(migrate(one, REPLACE, out="three")[1])
    assert "from .digamma import digamma\n" in third["ascend_function/__init__.py"]
    assert "from .mode import mode\n" in third["ascend_function/__init__.py"]
    assert third["ascend_function/mode.py"] == first["ascend_function/mode.py"]


def test_a_module_of_the_users_with_that_name_stays(migrate, tmp_path: Path) -> None:
    own = "import torch\n\nvalue = torch.logdet(torch.load('eye.pt'))\n"
    source = write(tmp_path / "p", {"ascend_function/__init__.py": own, "net.py": PROGRAM})
    files = python_files(migrate(source, REPLACE)[1])
    assert "import ascend_function_2\n" in files["net.py"]
    assert "ascend_function_2.logdet(x)" in files["net.py"]
    assert files["ascend_function/__init__.py"].startswith("import torch\nfrom ascend_function import")
    assert "ascend_function_2/mode.py" in files


def test_without_the_option_nothing_is_written(migrate, npumigrate, tmp_path: Path) -> None:
    source = write(tmp_path / "p", {"net.py": PROGRAM})
    assert python_files(migrate(source, "--extend-select", "NPU550")[1]) == {"net.py": PROGRAM}
    linted = npumigrate("lint", source, "-v", "2.6", "--select", "NPU55", "--no-cache")
    assert linted.out.count("NPU550 warning:") == 2
    refused, _ = migrate(source, REPLACE, "--safe-only", out="more")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--replace-unsupported and --safe-only cannot be used together" in refused.err
