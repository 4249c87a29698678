"""Deriving tables: wheels are read without running them, ranges are folded."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.api_support.derive.wheel_names import add_wheels, names_by_version
from migrator.api_support.derive.wheels import module_names, read_wheel

VERSIONS = """torch,torch_npu,evidence,torch_wheel,npu_wheel,int_device_is_npu,source
2.1.0,2.1.0,wheel,,,no,by hand
2.6.0,2.6.0,wheel,,,no,by hand
2.13.0,2.13.0,wheel,,,no,by hand
"""


def npu_wheel(folder: Path, version: str, text: str) -> Path:
    path = folder / f"torch_npu-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch_npu/__init__.py", "raise SystemExit('a wheel is read, not run')\n")
        archive.writestr("torch_npu/npu/__init__.py", text)
    return path


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


def test_a_file_that_is_no_wheel_of_these(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a torch nor a torch_npu wheel"):
        read_wheel(tmp_path / "numpy-2.0.0-cp311-cp311-linux_x86_64.whl")


def test_wheels_can_be_read_one_at_a_time(tmp_path: Path) -> None:
    together, apart = tmp_path / "together", tmp_path / "apart"
    texts = {
        "2.1.0.post17": "def a(): ...\n",
        "2.6.0": "def b(): ...\n",
        "2.13.0": "def a(): ...\ndef b(): ...\n",
    }
    for folder in (together, apart):
        folder.mkdir()
        (folder / "versions.csv").write_text(VERSIONS, encoding="utf-8")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version, text in reversed(list(texts.items())):
        path = npu_wheel(tmp_path, version, text)
        single = tmp_path / f"only {version}"
        single.mkdir()
        path.rename(single / path.name)
        add_wheels(single, apart)
        npu_wheel(wheels, version, text)
    add_wheels(wheels, together)
    add_wheels(wheels, together)
    for table in ("versions.csv", "wheel_names.csv"):
        assert (together / table).read_bytes() == (apart / table).read_bytes()
    assert (apart / "wheel_names.csv").read_text(encoding="utf-8") == (
        "module,name,kind,from,to\n"
        "torch_npu.npu,a,function,,2.1.0\n"
        "torch_npu.npu,a,function,2.13.0,\n"
        "torch_npu.npu,b,function,2.6.0,\n"
    )
    assert set(names_by_version(apart, "torch_npu")) == {"2.1.0", "2.6.0", "2.13.0"}


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
