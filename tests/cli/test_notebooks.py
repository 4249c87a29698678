"""Notebooks are migrated and analysed with the Python files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.results import rows

CELLS = [
    ("markdown", "Runs on `cuda`"),
    ("code", "%matplotlib inline\n!nvidia-smi\nimport torch"),
    ("code", "def move(x):\n    return x.cuda()\n"),
    ("code", "%%bash\nexport CUDA_VISIBLE_DEVICES=1\n"),
    ("code", "s = '中文'; x = torch.ones(1, device='cuda')\n"),
]
BROKEN = ("code", "torch.cuda.init(\n")


def notebook(cells: list[tuple[str, str]]) -> str:
    content = [{"cell_type": kind, "metadata": {}, "source": text.splitlines(True)} for kind, text in cells]
    return json.dumps({"cells": content, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_a_notebook_is_migrated(npumigrate, source, tmp_path) -> None:
    before = notebook(CELLS)
    (source / "n.ipynb").write_text(before)
    answer = npumigrate("-i", source, "-o", tmp_path, "-v", "2.6")
    assert (answer.code, answer.err) == (0, "")
    result = tmp_path / "project_msft"
    expected = before.replace('import torch"', 'import torch\\n",\n    "import torch_npu"')
    expected = expected.replace("x.cuda()", "x.npu()").replace("'cuda'", "'npu'")
    assert (result / "n.ipynb").read_text() == expected
    places = [
        (row["File"], row["Start Line"], row["Rule"])
        for row in rows(result / "migration_report/change_list.csv")
    ]
    assert places == [
        ("n.ipynb:cell 2", "3", "NPU901"),
        ("n.ipynb:cell 3", "2", "NPU111"),
        ("n.ipynb:cell 5", "1", "NPU121"),
    ]
    (left,) = rows(result / "migration_report/skipped_files.csv")
    what = "parts that are not Python are left unchanged; mentions CUDA_VISIBLE_DEVICES, nvidia-smi"
    assert left["Reason"] == f"{what} (first in cell 2)"
    (line,) = rows(result / "migration_report/manual_review.csv")
    assert (line["File"], line["Start Line"], line["Rule"]) == ("n.ipynb:cell 4", "2", "NPU404")
    again = npumigrate("-i", result, "-o", tmp_path / "again", "-v", "2.6")
    assert again.code == 0
    assert (tmp_path / "again/project_msft_msft/n.ipynb").read_text() == expected


def test_a_single_notebook_and_its_diff(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook(CELLS))
    answer = npumigrate("-i", source / "n.ipynb", "-o", tmp_path, "-v", "2.6", "--diff")
    assert answer.code == 0
    assert '-    "    return x.cuda()\\n"\n+    "    return x.npu()\\n"\n' in answer.out


def test_a_broken_cell_is_told_and_the_others_are_migrated(npumigrate, source, tmp_path) -> None:
    text = notebook([*CELLS, BROKEN, ("code", "broken too")])
    (source / "n.ipynb").write_text(text)
    answer = npumigrate("-i", source, "-o", tmp_path, "-v", "2.6")
    assert answer.code == 1
    assert "Python files and notebooks: 1 seen, 1 changed, 1 skipped" in answer.out
    assert "n.ipynb: cell 6: not valid Python (" in answer.out
    assert "; cell 7: not valid Python (" in answer.out  # it may define what other cells use
    result = (tmp_path / "project_msft/n.ipynb").read_text()
    assert "x.npu()" in result
    assert "torch.cuda.init(" in result


def test_a_broken_cell_of_a_notebook_without_cuda_is_nobodys_business(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook([("code", "x = 1"), ("code", "broken too")]))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"cuda"', "is not a notebook: "),
        ('{"worksheets": [], "nbformat": 3, "about": "cuda"}', "is not a notebook of format 4"),
    ],
)
def test_what_is_no_notebook_stays(npumigrate, source, tmp_path, text, reason) -> None:
    (source / "n.ipynb").write_text(text)
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 1
    assert (tmp_path / "project_msft/n.ipynb").read_text() == text
    (row,) = rows(tmp_path / "project_msft/migration_report/skipped_files.csv")
    assert row["Reason"].startswith(reason)


def test_other_languages_and_copies_of_jupyter_are_copied(npumigrate, source, tmp_path) -> None:
    other = json.loads(notebook(CELLS))
    other["metadata"] = {"kernelspec": {"language": "julia"}}
    (source / "julia.ipynb").write_text(json.dumps(other))
    (source / ".ipynb_checkpoints").mkdir()
    (source / ".ipynb_checkpoints/n-checkpoint.ipynb").write_text(notebook(CELLS))
    (source / "train.py").write_text("import torch\n")
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    result = tmp_path / "project_msft"
    assert (result / "julia.ipynb").read_text() == json.dumps(other)
    assert (result / ".ipynb_checkpoints/n-checkpoint.ipynb").read_text() == notebook(CELLS)
    assert rows(result / "migration_report/change_list.csv") == []
    (row,) = rows(result / "migration_report/skipped_files.csv")
    assert (row["File"], row["Reason"].partition("; ")[2]) == (
        "julia.ipynb",
        "mentions CUDA_VISIBLE_DEVICES, cuda, nvidia-smi (first in cell 2)",
    )
    assert rows(result / "migration_report/manual_review.csv") == []


def test_a_notebook_is_analysed(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook([*CELLS, ("code", "torch.cuda.temperature('a')\n")]))
    assert npumigrate("analyze", "-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    found = rows(tmp_path / "project_analysis/unsupported_api.csv")
    assert [(row["File"], row["Start Line"], row["OP"]) for row in found] == [
        ("n.ipynb:cell 6", "1", "torch.cuda.temperature")
    ]


def reasons(result: Path) -> list[str]:
    return [row["Reason"] for row in rows(result / "migration_report/skipped_files.csv")]


def test_commands_in_a_notebook_with_large_outputs_are_told(npumigrate, source, tmp_path) -> None:
    content = json.loads(notebook(CELLS))
    content["cells"][1]["outputs"] = [{"data": {"image/png": "A" * (5 << 20)}}]
    (source / "n.ipynb").write_text(json.dumps(content))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (reason,) = reasons(tmp_path / "project_msft")
    assert reason.endswith("mentions CUDA_VISIBLE_DEVICES, nvidia-smi (first in cell 2)")


def test_cuda_code_in_a_cell_is_told(npumigrate, source, tmp_path) -> None:
    kernel = ("code", "%%writefile k.cu\n__global__ void k() {}\n")
    script = ("code", "%%writefile t.py\ntorch.backends.cudnn.benchmark = True\n")
    (source / "n.ipynb").write_text(notebook([kernel, script]))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (reason,) = reasons(tmp_path / "project_msft")
    assert reason.endswith("mentions __global__, cudnn (first in cell 1)")


def test_every_notebook_is_started(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook([("code", "import torch"), ("code", "x = torch.ones(1)")]))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6", "--mode", "transfer").code == 0
    cell, _ = json.loads((tmp_path / "project_msft/n.ipynb").read_text())["cells"]
    assert "".join(cell["source"]) == (
        "import torch\nimport torch_npu\nfrom torch_npu.contrib import transfer_to_npu"
    )


def test_cells_of_databricks(npumigrate, source, tmp_path) -> None:
    prose = [("code", "%md\n# Runs on `cuda`\nas it is"), ("code", "%%html\n<b>nccl</b>")]
    others = [("code", "%sql\nSELECT * FROM cuda"), ("code", "%sh\nnvidia-smi")]
    (source / "n.ipynb").write_text(notebook([*prose, *others]))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (reason,) = reasons(tmp_path / "project_msft")
    assert reason.endswith("mentions cuda, nvidia-smi (first in cell 3)")


def test_lines_in_a_message_are_those_of_the_cell(npumigrate, source, tmp_path) -> None:
    step = "opt.zero_grad()\n    loss = model(x)\n    loss.backward()\n    opt.step()"
    loop = f"for x in data:\n    {step}\n    print(loss.item())\n    print(loss.item())\n"
    (source / "n.ipynb").write_text(notebook([("code", "import torch\n\n"), ("code", loop)]))
    assert npumigrate("analyze", "-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (row,) = rows(tmp_path / "project_analysis/api_performance_advice.csv")
    assert (row["File"], row["Start Line"]) == ("n.ipynb:cell 2", "6")
    assert "(lines 6, 7)" in row["Tips"]


def test_ranks_are_not_started_from_a_notebook(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook(CELLS))
    answer = npumigrate("-i", source, "-o", tmp_path, "-v", "2.6", "-m", "n.ipynb")
    assert answer.code == 2
    assert answer.err == "npumigrate: n.ipynb (-m/--main) is a notebook: ranks are started from a script\n"
    assert not (tmp_path / "project_msft").exists()


def test_a_cell_with_line_ends_of_another_kind(npumigrate, source, tmp_path) -> None:
    content = json.loads(notebook([("code", ""), ("code", "x = torch.ones(1).cuda()")]))
    content["cells"][0]["source"] = "import torch\rimport torch_npu\r"
    (source / "n.ipynb").write_text(json.dumps(content))
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (row,) = rows(tmp_path / "project_msft/migration_report/change_list.csv")
    assert (row["File"], row["Start Line"]) == ("n.ipynb:cell 2", "1")


def test_an_analysis_names_no_commands_that_its_modes_do_not_judge(npumigrate, source, tmp_path) -> None:
    (source / "n.ipynb").write_text(notebook(CELLS))
    (source / "run.sh").write_text("export CUDA_VISIBLE_DEVICES=0\n")
    assert npumigrate("analyze", "-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    assert rows(tmp_path / "project_analysis/skipped_files.csv") == []
