"""Notebooks: their cells, and everything else in the file as it was."""

from __future__ import annotations

import json

import pytest

from migrator.files.notebook import encode_notebook, read_notebook
from migrator.files.source import Unreadable

# Spaced as no program spaces it, so that a rewritten file shows.
NOTEBOOK = r"""{"nbformat":4, "nbformat_minor": 5,
 "metadata": {"language_info": {"name": "python"}, "x": [1.0,  2e3] },
 "cells": [
  {"cell_type": "markdown", "source": ["# torch.cuda"]},
  {"cell_type": "code", "id": "a", "outputs": [{"text": "torch.cuda"}],
   "source": [
    "%matplotlib inline\n",
    "!pip install torch \\\n",
    "   --upgrade\n",
    "import torch\n",
    "files = !ls\n",
    "torch?"
   ]},
  {"cell_type": "code", "source": "%%bash\ntorch.cuda.init()\n"},
  {"source": ["if True:\n", "    !echo\n", "x = torch.zeros(1).cuda()  # \u00e9"], "cell_type":"code"},
  {"cell_type": "code", "source": ["torch.cuda.init(\n"]}
 ]}
"""


def test_findings_by_cell(lint, tmp_path) -> None:
    (tmp_path / "n.ipynb").write_text(NOTEBOOK)
    answer = lint("--output-format=json")
    assert [(i["code"], i["cell"], i["location"]["row"]) for i in answer.json()] == [
        ("NPU901", 2, 4),
        ("NPU111", 4, 3),
        ("NPU999", 5, 1),
    ]
    assert "n.ipynb:cell 4:3:5: NPU111 [*] error: use .npu()" in lint("--output-format=concise").out
    assert "3 | x = torch.zeros(1).cuda()  # é\n" in lint("--output-format=full").out


def test_fix_changes_the_source_and_nothing_else(lint, tmp_path) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text(NOTEBOOK)
    lint("--fix")
    assert file.read_text() == NOTEBOOK.replace(".cuda()  #", ".npu()  #").replace(
        '    "import torch\\n",\n', '    "import torch\\n",\n    "import torch_npu\\n",\n'
    )
    assert lint("--output-format=json").places() == [("NPU999", 1, 1)]


def test_import_behind_the_last_line_of_a_cell(lint, tmp_path) -> None:
    file = tmp_path / "n.ipynb"
    cells = [{"cell_type": "code", "source": text} for text in ("import torch", "torch.cuda.init()")]
    file.write_text(json.dumps({"cells": cells}))
    first = lint("--output-format=json").json()[0]
    place = {"row": 1, "column": 13}
    edit = {"content": "\nimport torch_npu", "location": place, "end_location": place, "cell": 1}
    assert first["fix"]["edits"] == [edit]
    lint("--fix")
    sources = [cell["source"] for cell in json.loads(file.read_text())["cells"]]
    assert sources == ["import torch\nimport torch_npu", "torch.npu.init()"]


def test_noqa_in_cells(lint, tmp_path) -> None:
    file = tmp_path / "n.ipynb"
    cell = {"cell_type": "code", "source": "import torch\ntorch.cuda.init()"}
    file.write_text(json.dumps({"cells": [cell]}))
    lint("--add-noqa")
    source = json.loads(file.read_text())["cells"][0]["source"]
    assert source == "import torch  # noqa: NPU901\ntorch.cuda.init()  # noqa: NPU101"
    assert lint().code == 0


def test_other_languages_and_broken_files(lint, tmp_path) -> None:
    (tmp_path / "r.ipynb").write_text(NOTEBOOK.replace('"name": "python"', '"name": "R"'))
    (tmp_path / "broken.ipynb").write_text("{")
    (tmp_path / "list.ipynb").write_text("[]")
    answer = lint("--output-format=json")
    assert (answer.code, answer.json()) == (2, [])
    assert len(answer.err.splitlines()) == 2


@pytest.mark.parametrize("data", [b"\xff", b"{", b"{}", b'{"cells": 1}', b"null"])
def test_what_is_no_notebook(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_notebook(data, "n.ipynb")


def test_unchanged_text_gives_the_same_bytes() -> None:
    notebook = read_notebook(NOTEBOOK.encode(), "n.ipynb")
    assert encode_notebook(notebook, notebook.text) == NOTEBOOK.encode()


def test_of_keys_that_stand_twice_the_last_one_counts() -> None:
    cell = '{"cell_type": "code", "source": "old", "source": "x.cuda()"}'
    raw = f'{{"cells": 5, "cells": [{cell}], "metadata": {{}}}}'
    notebook = read_notebook(raw.encode(), "n.ipynb")
    assert notebook.text == "x.cuda()\n#%% 1\n"
    assert encode_notebook(notebook, "x.npu()\n#%% 1\n").decode() == raw.replace("cuda", "npu")


@pytest.mark.parametrize("comma", [",", " , "])
def test_lines_that_stay_keep_their_spelling(comma) -> None:
    lines = rf'["if 1 \u003c 2:  # \u00e9 é\n"{comma}"    x.cuda()"]'
    raw = f'{{"cells": [{{"cell_type": "code", "source": {lines}}}]}}'
    notebook = read_notebook(raw.encode(), "n.ipynb")
    written = encode_notebook(notebook, notebook.text.replace("cuda", "npu")).decode()
    assert written == raw.replace("cuda", "npu")


def test_an_expression_beside_a_command_is_no_magic() -> None:
    source = "!ls\nx = (\n    '%s'\n    % y\n    % (1,)\n    != z\n)\n% matplotlib inline"
    raw = json.dumps({"cells": [{"cell_type": "code", "source": source}]})
    notebook = read_notebook(raw.encode(), "n.ipynb")
    assert notebook.cells[0].checked
    assert notebook.hidden == ("!ls", "% matplotlib inline")


@pytest.mark.parametrize(
    "line", ["found['x'] = !ls", "found[0], rest = %env", "torch.*cuda*?", "?torch.cuda*"]
)
def test_magics_of_all_sorts(line) -> None:
    raw = json.dumps({"cells": [{"cell_type": "code", "source": f"{line}\nx.cuda()"}]})
    notebook = read_notebook(raw.encode(), "n.ipynb")
    assert notebook.hidden == (line,)
    assert encode_notebook(notebook, notebook.text.replace("x.cuda", "x.npu")).decode() == raw.replace(
        "x.cuda", "x.npu"
    )
