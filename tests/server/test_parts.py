"""Parts of the server by themselves: what they do where an editor does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.lint.config_files import Configuration
from migrator.lint.files import Target
from migrator.server import workspace
from migrator.server.hover import _qualified_name
from migrator.server.workspace import Settings, WorkspaceFacts

TOOLKIT = "class Toolkit:\n    def cuda(self):\n        return 12\n"


def _named(text: str, line: int, column: int) -> str:
    """What the name at a place of a Python text stands for."""
    offset = sum(map(len, text.splitlines(True)[:line])) + column
    name, start, end = _qualified_name(text, offset, True)
    assert start <= offset <= end
    return name


@pytest.mark.parametrize(
    ("text", "column", "name"),
    [
        ("import torch.nn.functional as F\n", 30, "torch.nn.functional"),
        ("import torch.nn.functional as F\n", 11, "torch"),
        ("import torch.nn.functional as F\n", 14, "torch.nn"),
        ("from torch import nn as n, cuda\n", 18, "torch.nn"),
        ("from torch import nn as n, cuda\n", 24, "torch.nn"),
        ("from torch import nn as n, cuda\n", 28, "torch.cuda"),
        ("from torch.cuda import Event\n", 12, "torch.cuda"),
        ("from .torch import Event\n", 20, "Event"),  # a file of the project
        ("x = 1 + (  # torch\n", 13, "torch"),  # no Python just now
        ("x = 1  # torch\n", 10, ""),
        ("'torch.cuda'\n", 3, ""),
        ("'NCCL_DEBUG'\n", 3, "NCCL_DEBUG"),
        ("x = 1 +  2\n", 8, ""),
    ],
)
def test_what_a_name_stands_for(text: str, column: int, name: str) -> None:
    assert _named(text, 0, column) == name


def test_a_method_is_of_what_the_object_surely_is() -> None:
    text = "import torch\nx = torch.ones(2)\nm = torch.nn.Linear(1, 1)\n"
    for line, name in (
        ("x.mode()", "torch.Tensor.mode"),
        ("m.cuda()", "torch.nn.Linear.cuda"),
        ("m.acme()", "torch.nn.Module.acme"),
        ("y.mode()", ""),
        ("y", ""),
    ):
        assert _named(f"{text}{line}\n", 3, line.find(".") + 1) == name


def _target(folder: Path, name: str) -> Target:
    target = Settings().target(folder / name)
    assert target is not None
    return target


def test_what_was_known_of_a_file_stays_while_it_is_typed(tmp_path: Path) -> None:
    known, target = WorkspaceFacts(), _target(tmp_path, "tools.py")
    assert known.learn(tmp_path, target, TOOLKIT)
    assert not known.learn(tmp_path, target, f"{TOOLKIT}x = (\n")
    assert [one.name for one in known.project(tmp_path, target.place).classes] == ["Toolkit"]
    assert known.learn(tmp_path, target, "x = 1\n")
    assert known.project(tmp_path, target.place).classes == ()
    assert known.learn(tmp_path, target, TOOLKIT)
    assert known.learn(tmp_path, target, None)  # the file is gone
    assert known.project(tmp_path, target.place).classes == ()


def test_outside_of_the_workspace_a_file_knows_itself_only(tmp_path: Path) -> None:
    known = WorkspaceFacts()
    first, second = _target(tmp_path, "tools.py"), _target(tmp_path, "user.py")
    known.learn(None, first, TOOLKIT)
    assert [one.name for one in known.project(None, first.place).classes] == ["Toolkit"]
    assert known.project(None, second.place).classes == ()


def test_a_folder_is_looked_at_some_files_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"a{number}.py").write_text(TOOLKIT.replace("Toolkit", f"T{number}") if number else "")
    monkeypatch.setattr(workspace, "_AT_ONCE", 1)
    known = WorkspaceFacts()
    assert list(known.scan(tmp_path, Configuration({}))) == [False, True, True, True, True, False]
    assert len(known.project(tmp_path, tmp_path / "a0.py").classes) == 4
    assert not any(known.scan(tmp_path, Configuration({})))  # nothing is new
    known.forget(tmp_path)
    assert known.project(tmp_path, tmp_path / "a0.py").classes == ()
    monkeypatch.setattr(workspace, "_MOST_FILES", 3)  # as in somebody's home folder
    assert list(known.scan(tmp_path, Configuration({}))) == [False, True, True, False]


def test_settings_that_are_empty_are_as_if_not_given(tmp_path: Path) -> None:
    settings = Settings()
    settings.take({"npumigrate": {"version": "2.6", "select": None}})
    assert settings.of_editor == {"version": "2.6"}
    with pytest.raises(ValueError, match="unknown key 'vresion'"):
        settings.take({"vresion": "2.1"})
    assert settings.of_editor == {"version": "2.6"}  # the old ones hold
