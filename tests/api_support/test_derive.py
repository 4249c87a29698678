"""Deriving tables: names of modules, ranges, the order of rows."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tools import npu_names as npu_names_tool
from tools.releases import check, npu_names, writing
from tools.releases.wheels import module_names


def test_names_of_a_module() -> None:
    texts = {
        "torch_npu.npu": "__all__ = ['FloatTensor']\n"
        "import os\n"
        "from .streams import *\n"
        "from . import memory as mem\n"
        "from torch_npu._C import _thing\n"
        "if os.name:\n    def synchronize(): ...\n"
        "try:\n    limit: int = 3\nexcept Exception:\n    spare = other = 4\n"
        "unset: int\n",
        "torch_npu.npu.streams": "__all__ = ['Stream']\nclass Stream: ...\nclass Hidden: ...\n",
        "torch_npu.npu.memory": "from . import synchronize\nfrom .streams import Stream as S\n",
    }
    found = module_names(
        {name: (name == "torch_npu.npu", partial(str, text)) for name, text in texts.items()}
    )
    assert found["torch_npu.npu"] == {
        "FloatTensor": "class",
        "Stream": "class",
        "_thing": "value",
        "limit": "value",
        "mem": "module",
        "memory": "module",
        "os": "import",
        "other": "value",
        "spare": "value",
        "streams": "module",
        "synchronize": "function",
    }
    assert found["torch_npu.npu.memory"]["S"] == "class"


def test_ranges() -> None:
    order = ["2.1.0", "2.6.0", "2.9.0", "2.13.0"]
    yes, no = ("yes",), ("no",)
    assert tables.ranges(dict.fromkeys(order, yes), order) == [("", "", yes)]
    assert tables.ranges({"2.6.0": yes, "2.9.0": yes}, order) == [("2.6.0", "2.9.0", yes)]
    assert tables.ranges({"2.1.0": yes, "2.6.0": no, "2.13.0": no}, order) == [
        ("", "2.1.0", yes),
        ("2.6.0", "2.6.0", no),
        ("2.13.0", "", no),
    ]


def test_versions_sort_as_numbers(tmp_path: Path) -> None:
    writing.write_in(tmp_path, "aliases", [("b", "2.10.0"), ("b", "2.9.0"), ("b", ""), ("a", "2.11.0")])
    content = (tmp_path / "aliases.csv").read_bytes()
    assert content == b"alias,api\na,2.11.0\nb,\nb,2.9.0\nb,2.10.0\n"


def by_hand(folder: Path, *rows: str) -> None:
    """Copy the tables into a folder, and add rows that a person wrote."""
    shutil.copytree(data_folder("api_db"), folder)
    with open(folder / "by_hand" / "npu_names.csv", "a", encoding="utf-8", newline="") as file:
        file.writelines(row + "\n" for row in rows)


def test_a_name_is_taught_from_a_version_on_without_a_wheel(tmp_path: Path) -> None:
    by_hand(tmp_path / "api_db", "torch.cuda.brand_new,2.9.1,,torch.npu.brand_new,,,,a release note")
    assert "run tools/npu_names.py" in check.problems(tmp_path / "api_db")[0]
    npu_names.derive(tmp_path / "api_db")
    assert check.problems(tmp_path / "api_db") == []
    rows = [row for row in tables.rows("npu_names", tmp_path / "api_db") if "brand_new" in row[0]]
    # Before torch 2.1 not all was looked up, so the advice is another one.
    assert [row[1:5] for row in rows] == [
        ["", "2.0.1", "value", ""],
        ["2.1.0", "2.9.0", "value", ""],
        ["2.9.1", "", "value", "torch.npu.brand_new"],
    ]
    assert rows[1][6].startswith("torch_npu has torch.npu.brand_new from torch 2.9.1 on")
    assert rows[2][7] == "a release note"


def test_a_name_can_mean_one_thing_and_then_another(tmp_path: Path) -> None:
    words = (
        "torch.cuda.odd,,2.6.0,-,raises,,Remove it.,tried",
        "torch.cuda.odd,2.7.1,,torch.npu.odd,,,,tried",
    )
    by_hand(tmp_path / "api_db", *words)
    npu_names.derive(tmp_path / "api_db")
    assert check.problems(tmp_path / "api_db") == []
    rows = [row for row in tables.rows("npu_names", tmp_path / "api_db") if row[0] == "torch.cuda.odd"]
    assert [row[1:7] for row in rows] == [
        ["", "2.6.0", "value", "", "raises", "Remove it."],
        ["2.7.1", "", "value", "torch.npu.odd", "", ""],
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            "torch.cuda.odd,2.99.0,,torch.npu.odd,,,,tried",
            "torch.cuda.odd: torch 2.99.0 is not in versions.csv: write one of them, or add a row",
        ),
        (
            "torch.cuda.odd,2.6,,torch.npu.odd,,,,tried",
            "torch.cuda.odd: torch 2.6 is not in versions.csv: write 2.6.0",
        ),
        (
            "torch.cuda.odd,,2.7,torch.npu.odd,,,,tried",
            "torch.cuda.odd: torch 2.7 is not in versions.csv: write 2.7.1",
        ),
        ("torch.cuda.odd,2.6.0", "2 cells, not 8"),
    ],
)
def test_a_row_by_hand_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], row: str, reason: str
) -> None:
    by_hand(tmp_path / "api_db", row)
    number = len((tmp_path / "api_db" / "by_hand" / "npu_names.csv").read_text().splitlines())
    with pytest.raises(npu_names.ByHandError) as error:
        npu_names.derive(tmp_path / "api_db")
    assert str(error.value) == f"by_hand/npu_names.csv:{number}: {reason}"
    monkeypatch.setattr(npu_names_tool, "data_folder", lambda _: tmp_path / "api_db")
    assert npu_names_tool.main() == 1
    assert capsys.readouterr().out == f"{error.value}\n"
    assert check.problems(tmp_path / "api_db") != []
