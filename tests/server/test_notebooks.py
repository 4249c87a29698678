"""Notebooks as an editor sees them: each cell with findings and fixes of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from migrator.cli.main import run

if TYPE_CHECKING:
    from conftest import Editor

VERSION = {"version": "2.6"}
CELLS = [
    ("markdown", "# torch.cuda"),
    ("python", "%matplotlib inline\n!pip install torch\nimport torch"),
    ("r", "torch.cuda.init()"),
    ("python", "%%bash\ntorch.cuda.init()\n"),
    ("python", "s = '\U0001f600'; x = torch.zeros(1).cuda()\n%config torch.cuda.synchronize()"),
]


def span(line: int, start: int, end: int) -> types.Range:
    return types.Range(types.Position(line, start), types.Position(line, end))


def open_cells(editor: Editor, cells: list[tuple[str, str]] = CELLS) -> None:
    editor.start(VERSION)
    editor.open_notebook("n.ipynb", cells)


def test_each_cell_has_its_findings(editor: Editor, tmp_path: Path) -> None:
    open_cells(editor)
    assert [str(item.code) for item in editor.found("n.ipynb#1")] == ["NPU901"]
    assert editor.found("n.ipynb#3") == []
    (found,) = editor.found("n.ipynb#4")
    assert (found.code, found.range) == ("NPU111", span(0, 14, 33))
    for other in ("n.ipynb", "n.ipynb#0", "n.ipynb#2"):
        assert not editor.was_published(other)
    assert editor.leave() == 0


def test_they_are_those_of_lint(editor: Editor, tmp_path: Path, capsys) -> None:
    cells = [{"cell_type": "code", "source": text} for language, text in CELLS if language == "python"]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    run(["lint", "-v2.6", "-n", "--output-format=json", str(tmp_path / "n.ipynb")])
    found = json.loads(capsys.readouterr().out)
    expected = [(item["cell"], item["code"], item["location"]["row"]) for item in found]
    open_cells(editor)
    names = ("n.ipynb#1", "n.ipynb#3", "n.ipynb#4")
    assert expected == [
        (number, item.code, item.range.start.line + 1)
        for number, name in enumerate(names, 1)
        for item in editor.found(name)
    ]


def test_findings_follow_what_one_types_in_a_cell(editor: Editor) -> None:
    open_cells(editor)
    editor.found("n.ipynb#4")
    editor.type_in_cell("n.ipynb#4", "npu", span(0, 29, 33))
    assert editor.found("n.ipynb#4") == []
    assert editor.found("n.ipynb#1") == []  # no torch_npu is needed any more
    editor.type_in_cell("n.ipynb#4", "(", span(0, 0, 0))
    assert [item.code for item in editor.found("n.ipynb#4")] == ["NPU999"]
    editor.type_in_cell("n.ipynb#4", "", span(0, 0, 1))
    editor.type_in_cell("n.ipynb#4", "cuda", span(0, 29, 32))
    assert [item.code for item in editor.found("n.ipynb#4")] == ["NPU111"]


def test_a_broken_cell_keeps_the_findings_around(editor: Editor) -> None:
    open_cells(editor, [("python", "import torch\n"), ("python", "a = 1\ntorch.cuda.init()\nb = 2\n")])
    (before,) = editor.found("n.ipynb#1")
    editor.type_in_cell("n.ipynb#1", "y = (\n", span(0, 0, 0))
    broken = editor.found("n.ipynb#1")
    assert [(item.code, item.range) for item in broken] == [
        ("NPU999", span(0, 0, 1)),
        ("NPU101", span(2, 0, 15)),
    ]
    assert editor.actions("n.ipynb#1", 2) == []
    editor.type_in_cell("n.ipynb#0", "# more\n", span(0, 0, 0))
    editor.type_in_cell("n.ipynb#1", "1, ", span(0, 5, 5))
    assert [item.range for item in editor.found("n.ipynb#1")][1:] == [span(2, 0, 15)]
    editor.type_in_cell("n.ipynb#1", ")", span(0, 8, 8))
    (after,) = editor.found("n.ipynb#1")
    assert (after.code, after.range) == (before.code, span(2, 0, 15))
    assert editor.actions("n.ipynb#1", 2)


def test_a_fix_may_touch_several_cells(editor: Editor) -> None:
    open_cells(editor)
    editor.found("n.ipynb#4")
    fix, suppress, every = editor.actions("n.ipynb#4", 0)
    expected = {
        editor.uri("n.ipynb#1"): CELLS[1][1] + "\nimport torch_npu",
        editor.uri("n.ipynb#4"): CELLS[4][1].replace(".cuda()\n", ".npu()\n"),
    }
    assert editor.all_applied(fix) == expected
    assert editor.all_applied(editor.resolve(every)) == expected
    assert "(1).cuda()  # noqa: NPU111\n%config" in editor.applied("n.ipynb#4", suppress)


def test_cells_come_and_go(editor: Editor) -> None:
    open_cells(editor, [("python", "import torch"), ("python", "torch.cuda.init()")])
    assert [item.code for item in editor.found("n.ipynb#1")] == ["NPU101"]
    new = ("n.ipynb#new", "python", "\ntorch.cuda.empty_cache()")
    editor.replace_cells("n.ipynb", 1, [], [new])
    assert [item.range.start.line for item in editor.found("n.ipynb#new")] == [1]
    editor.replace_cells("n.ipynb", 0, ["n.ipynb#0"])
    editor.wait(lambda: editor.published("n.ipynb#0") == [])
    editor.wait(lambda: editor.published("n.ipynb#1") != ["NPU101"])  # nothing imports torch now
    editor.close_notebook("n.ipynb", ["n.ipynb#new", "n.ipynb#1"])
    editor.wait(lambda: editor.published("n.ipynb#new") == editor.published("n.ipynb#1") == [])


def test_hover_in_a_cell(editor: Editor) -> None:
    open_cells(editor, [("python", "import torch as t"), ("python", "!ls\nx = 1; t.cuda.synchronize()")])
    editor.found("n.ipynb#1")
    said = editor.hover("n.ipynb#1", 1, 16)
    assert said.startswith("**torch.cuda.synchronize  at torch 2.6.0")
    assert "NPU101" in said
    assert editor.hover("n.ipynb#1", 0, 1) == ""


def test_what_a_notebook_defines_is_known(editor: Editor, tmp_path: Path) -> None:
    user = "from tools import Toolkit\nprint(Toolkit().cuda())\n"
    open_cells(editor, [("python", "class Toolkit:\n    def cuda(self):\n        return 12\n")])
    editor.found("n.ipynb#0")
    together = [item.code for item in editor.open("user.py", user)]
    editor.close_notebook("n.ipynb", ["n.ipynb#0"])
    editor.wait(lambda: editor.published("user.py") != together)


def test_a_notebook_opened_as_its_json_has_no_findings(editor: Editor) -> None:
    assert editor.open("n.ipynb", '{"cells": ["torch.cuda.init()"]}') == []


def test_nonsense_does_not_end_it(editor: Editor) -> None:
    open_cells(editor)
    editor.replace_cells("n.ipynb", 99, [], [("n.ipynb#far", "python", "import torch\ntorch.cuda.init()")])
    editor.replace_cells("other.ipynb", 0, [], [("other.ipynb#0", "python", "x")])
    assert editor.found("n.ipynb#far")
    editor.close_notebook("other.ipynb", [])
    assert editor.leave() == 0
