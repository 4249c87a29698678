"""The table of torch's names, from wheels."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tests.api_support.wheel_files import torch_wheel, torchvision_wheel
from tools.releases import check, torch_table, writing
from tools.releases.add import add
from tools.releases.archive import WheelError
from tools.releases.torch_facts import MAYBE, Fact, Facts
from tools.releases.wheels import read_wheel


def facts(folder: Path, **files: str) -> Facts:
    """What is read of a torch wheel with these modules: ``nn__functional`` is torch/nn/functional.py."""
    paths = {
        f"torch/{name.replace('__', '/').replace('init', '__init__')}.py": text
        for name, text in files.items()
    }
    public = read_wheel(torch_wheel(folder, "2.15.0", **paths)).public
    assert public is not None
    return public.facts


def test_definitions_and_their_spellings(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        init="from . import nn\nfrom .functional import *\n",
        functional="__all__ = ['norm']\ndef norm(input, p=2, *, dim=None): ...\ndef helper(): ...\n",
        nn__init="from .parameter import Parameter as Parameter\n",
        nn__parameter="import math\n"
        "class Parameter(object):\n"
        "    def __init__(self, data, *, like=None): ...\n    def grow(self, by): ...\n",
    )
    assert found["torch.norm"] == Fact("function", "", ("input", "p", "dim"))
    assert found["torch.functional.norm"] == Fact("alias", "torch.norm")
    assert found["torch.functional.helper"].kind == "function"
    assert "torch.helper" not in found
    assert found["torch.nn.Parameter"] == Fact("class", "", ("data", "like"))
    assert found["torch.nn.parameter.Parameter"] == Fact("alias", "torch.nn.Parameter")
    assert found["torch.nn.Parameter.grow"] == Fact("function", "", ("by",))
    assert found["torch.nn.parameter.math"] == MAYBE


def test_what_the_sources_leave_open_is_no_absence(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        init="from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .hidden import seen_by_checkers\n",
        hidden="def seen_by_checkers(): ...\n",
        lazy="def __getattr__(name):\n    if name == 'late':\n        return 1\n    raise AttributeError\n",
        filled="for name in ('a', 'b'):\n    globals()[name + '_made'] = 1\n",
        twice__init="from torch.hidden import other\n",
        proxy="class Proxy:\n    def __getattr__(self, name):\n        return getattr(self.inner, name)\n",
    )
    assert found["torch.seen_by_checkers"] == MAYBE
    assert found["torch.lazy.late"] == MAYBE
    assert found["torch.filled"] == Fact("module", "?")
    assert found["torch.proxy.Proxy"].of == "?"


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("def f(a, b=1, *rest, c, d=2): ...", ("a", "b", "c", "d")),
        ("def f(a, /, b): ...", ("b",)),
        ("def f(a, **options): return g(**options)", ("a", "*")),
        (
            "def f(a, **options):\n    b = options.pop('b', 1)\n    if options:\n        raise ValueError",
            ("a", "b"),
        ),
        ("def f(a, **options):\n    b = options.pop('b', 1)", ("a", "b", "*")),
        ("def f(a, **pickle_load_args): return g(**pickle_load_args)", ("a",)),
        ("f = make(1)", ()),
    ],
)
def test_keywords(tmp_path: Path, signature: str, words: tuple[str, ...]) -> None:
    assert facts(tmp_path, init=signature)["torch.f"].parameters == words


def test_keywords_of_a_class(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        init="from dataclasses import dataclass\n"
        "class Base:\n    def __init__(self, size): ...\n"
        "class Plain(Base):\n    pass\n"
        "class More(Base):\n    def __init__(self, extra, **kwargs):\n        super().__init__(**kwargs)\n"
        "@dataclass\nclass Options:\n    width: int\n    height: int = 1\n",
    )
    assert found["torch.Plain"] == Fact("class", "torch.Base", ("^",))
    assert found["torch.More"].parameters == ("extra", "^")
    assert found["torch.Options"].parameters == ("width", "height", "^")


@pytest.fixture
def api_db(tmp_path: Path) -> Path:
    folder = tmp_path / "api_db"
    shutil.copytree(data_folder("api_db"), folder)
    for table in ("torch_names", "torch_wheels"):
        writing.write_in(folder, table, [])
    return folder


def put(paths: list[Path], api_db: Path) -> None:
    """Put wheels of one package into the table, without looking at the others."""
    wheels = [read_wheel(path) for path in paths]
    read = {wheel.torch_version: (wheel.release, wheel.public) for wheel in wheels if wheel.public}
    torch_table.set_releases(api_db, wheels[0].package, read)


def rows(folder: Path, name: str) -> list[list[str]]:
    return [row[1:] for row in tables.rows("torch_names", folder) if row[0] == name]


def test_ranges(tmp_path: Path, api_db: Path) -> None:
    texts = {
        "1.8.1": "def load(f): ...\ndef eig(): ...\n",
        "1.12.1": "def load(f, **kwargs): return f(**kwargs)\ndef eig(): ...\n",
        "2.6.0": "def load(f, weights_only=None): ...\ndef compile(model): ...\n",
    }
    for version, text in texts.items():
        path = torch_wheel(tmp_path, version, **{"torch/__init__.py": text})
        put([path], api_db)
    assert rows(api_db, "torch.load") == [["", "", "function", "", "f weights_only@2.6.0- *@1.12.1-1.12.1"]]
    assert rows(api_db, "torch.eig") == [["", "1.12.1", "function", "", ""]]
    assert rows(api_db, "torch.compile") == [["2.6.0", "", "function", "", "model"]]
    # The same wheel again changes nothing.
    before = (api_db / "torch_names.csv").read_bytes()
    put([path], api_db)
    assert (api_db / "torch_names.csv").read_bytes() == before


def test_a_torch_without_torch_npu_is_known_by_its_names_only(tmp_path: Path) -> None:
    wheel = torch_wheel(tmp_path, "2.15.0", **{"torch/__init__.py": "def compile(): ...\n"})
    out = tmp_path / "out"
    add([read_wheel(wheel)], data_folder("api_db"), out)
    assert check.problems(out) == []
    assert "2.15.0" in writing.order(out, "torch_wheels")
    assert "2.15.0" not in writing.order(out)


def test_the_compiled_part_may_have_what_its_stub_lacks(tmp_path: Path, api_db: Path) -> None:
    stub = {"torch/_C/__init__.pyi": "class ScriptDict: ...\nclass Event: ...\n"}
    old = torch_wheel(tmp_path, "2.5.1", words=b"\0ScriptDict\0", **{"torch/_C/__init__.pyi": ""})
    new = torch_wheel(tmp_path, "2.6.0", words=b"\0ScriptDict\0Event\0", **stub)
    put([old, new], api_db)
    found = torch_table.by_version(api_db)
    assert found["2.5.1"]["torch.ScriptDict"] == MAYBE
    assert "torch.Event" not in found["2.5.1"]
    # Nor does it lack it when its wheel is read again, without the other's.
    put([old], api_db)
    assert torch_table.by_version(api_db) == found
    assert found["2.6.0"]["torch.Event"].kind == "class"


def test_torchvision_stands_for_its_torch(tmp_path: Path, api_db: Path) -> None:
    ops = {"torchvision/ops.py": "from torch import nn\nclass MLP(nn.Sequential): ...\n"}
    torch = torch_wheel(
        tmp_path, "2.5.1", **{"torch/nn.py": "class Sequential:\n    def append(self): ...\n"}
    )
    put([torch], api_db)
    put([torchvision_wheel(tmp_path, "0.20.1", "2.5.1", **ops)], api_db)
    assert rows(api_db, "torchvision.ops.MLP") == [["", "", "class", "torch.nn.Sequential", "^"]]
    assert list(tables.rows("torch_wheels", api_db)) == [
        ["2.5.1", "2.5.1", "0.20.1", "", "torch wheel; torchvision wheel"]
    ]


def test_a_torchvision_that_names_no_torch(tmp_path: Path) -> None:
    with pytest.raises(WheelError, match="does not say which torch it belongs to"):
        read_wheel(torchvision_wheel(tmp_path, "0.20.1", "main"))
