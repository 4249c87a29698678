"""Deriving tables: names of modules, ranges, the order of rows."""

from __future__ import annotations

from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.derive.wheels import module_names


def test_names_of_a_module() -> None:
    found = module_names(
        {
            "torch_npu.npu": (
                True,
                "__all__ = ['FloatTensor']\n"
                "import os\n"
                "from .streams import *\n"
                "from . import memory as mem\n"
                "from torch_npu._C import _thing\n"
                "if os.name:\n    def synchronize(): ...\n"
                "try:\n    limit: int = 3\nexcept Exception:\n    spare = other = 4\n"
                "unset: int\n",
            ),
            "torch_npu.npu.streams": (False, "__all__ = ['Stream']\nclass Stream: ...\nclass Hidden: ...\n"),
            "torch_npu.npu.memory": (False, "from . import synchronize\nfrom .streams import Stream as S\n"),
        }
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
    path = tmp_path / "table.csv"
    tables.write(path, ("name", "from"), [("b", "2.10.0"), ("b", "2.9.0"), ("b", ""), ("a", "2.11.0")])
    assert path.read_bytes() == b"name,from\na,2.11.0\nb,\nb,2.9.0\nb,2.10.0\n"
