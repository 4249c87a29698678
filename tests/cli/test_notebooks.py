"""Notebooks are migrated and analysed with the Python files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reading import rows, sources, write

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


def reasons(result: Path) -> list[str]:
    return [row["Reason"] for row in rows(result, "skipped_files")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A project with the notebook ``n.ipynb``."""
    return write(tmp_path / "project", {"n.ipynb": notebook(CELLS)})


def test_a_notebook_is_migrated(migrate, source) -> None:
    answer, result = migrate(source)
    assert (answer.code, answer.err) == (0, "")
    expected = notebook(CELLS).replace('import torch"', 'import torch\\n",\n    "import torch_npu"')
    expected = expected.replace("x.cuda()", "x.npu()").replace("'cuda'", "'npu'")
    expected = expected.replace("!nvidia-smi", "!npu-smi info").replace("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")
    assert (result / "n.ipynb").read_text() == expected
    places = [(row["File"], row["Start Line"], row["Rule"]) for row in rows(result, "change_list")]
    assert places == [
        ("n.ipynb:cell 2", "2", "NPU414"),
        ("n.ipynb:cell 2", "3", "NPU901"),
        ("n.ipynb:cell 3", "2", "NPU111"),
        ("n.ipynb:cell 4", "2", "NPU410"),
        ("n.ipynb:cell 5", "1", "NPU121"),
    ]
    assert reasons(result) == []
    again, twice = migrate(result, out="again")
    assert again.code == 0
    assert (twice / "n.ipynb").read_text() == expected


BESIDE = """\
%timeit -n 10 x.cuda()
    %time y = x.cuda(); z = 1
%prun for each in x: each.cuda()
===
%%timeit x = x.cuda()
x + 1
===
names = !nvidia-smi -L
count = !nvidia-smi -L | wc -l
===
!CUDA_VISIBLE_DEVICES=0 torchrun t.py \\
  --device cuda --name {name}
%run -i t.py --device cuda:1
%env CUDA_VISIBLE_DEVICES=0
%set_env CUDA_VISIBLE_DEVICES 0
%pip install faiss-gpu
===
%%writefile t.py
import torch
torch.ones(1).cuda()
===
%%file -a run.sh
python t.py --device cuda
===
%%writefile conf.yaml
device: cuda
===
%%sh
export DEVICE=cuda

python t.py --name cuda"""
RUNS_ON_NPUS = """\
%timeit -n 10 x.npu()
    %time y = x.npu(); z = 1
%prun for each in x: each.cuda()
===
%%timeit x = x.npu()
x + 1
===
names = !nvidia-smi -L
count = !python3 -c 'import torch, torch_npu; print(torch.npu.device_count())'
===
!ASCEND_RT_VISIBLE_DEVICES=0 torchrun t.py \\
  --device npu --name {name}
%run -i t.py --device npu:1
%env ASCEND_RT_VISIBLE_DEVICES=0
%set_env ASCEND_RT_VISIBLE_DEVICES=0
%pip install faiss-cpu
===
%%writefile t.py
import torch
import torch_npu
torch.ones(1).npu()
===
%%file -a run.sh
python t.py --device npu
===
%%writefile conf.yaml
device: npu
===
%%sh
export DEVICE=npu

python t.py --name cuda"""


def test_statements_behind_magics_commands_and_written_files_are_migrated(migrate, source) -> None:
    start = ("code", "import torch\nimport torch_npu\nx = torch.ones(1)")
    cells = BESIDE.replace("    %time", "if x:\n    %time").split("\n===\n")
    write(source, {"n.ipynb": notebook([start, *(("code", cell) for cell in cells)])})
    answer, result = migrate(source)
    assert (answer.code, answer.err) == (0, "")
    _, *found = json.loads((result / "n.ipynb").read_text())["cells"]
    text = "\n===\n".join("".join(cell["source"]) for cell in found)
    assert text == RUNS_ON_NPUS.replace("    %time", "if x:\n    %time")
    changes = {(row["File"], row["Before"], row["After"]) for row in rows(result, "change_list")}
    assert ("n.ipynb:cell 2", "%timeit -n 10 x.cuda()", "%timeit -n 10 x.npu()") in changes
    places = {(row["File"], row["Start Line"], row["Rule"]) for row in rows(result, "manual_review")}
    assert places == {("n.ipynb:cell 4", "1", "NPU414")}


def test_a_single_notebook_and_its_diff(migrate, source) -> None:
    answer, _ = migrate(source / "n.ipynb", "--diff")
    assert answer.code == 0
    assert '-    "    return x.cuda()\\n"\n+    "    return x.npu()\\n"\n' in answer.out


def test_a_broken_cell_is_told_and_the_others_are_migrated(migrate, source) -> None:
    write(source, {"n.ipynb": notebook([*CELLS, BROKEN, ("code", "broken too")])})
    answer, result = migrate(source)
    assert answer.code == 1
    assert "Python files and notebooks: 1 seen, 1 changed, 1 skipped" in answer.out
    assert "n.ipynb: cell 6: not valid Python (" in answer.out
    assert "; cell 7: not valid Python (" in answer.out  # it may define what other cells use
    text = (result / "n.ipynb").read_text()
    assert "x.npu()" in text
    assert "torch.cuda.init(" in text
    write(source, {"n.ipynb": notebook([("code", "x = 1"), ("code", "broken too")])})
    assert migrate(source, "--overwrite")[0].code == 0  # without CUDA it is nobody's business


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"cuda"', "not a notebook: "),
        ('{"worksheets": [], "nbformat": 3, "about": "cuda"}', "not a notebook of format 4"),
    ],
)
def test_what_is_no_notebook_stays(migrate, source, text, reason) -> None:
    answer, result = migrate(write(source, {"n.ipynb": text}))
    assert answer.code == 1
    assert (result / "n.ipynb").read_text() == text
    (why,) = reasons(result)
    assert why.startswith(reason)


def test_other_languages_and_copies_of_jupyter_are_copied(migrate, source) -> None:
    (source / "n.ipynb").unlink()
    julia = json.loads(notebook(CELLS)) | {"metadata": {"kernelspec": {"language": "julia"}}}
    copy = ".ipynb_checkpoints/n-checkpoint.ipynb"
    files = {"julia.ipynb": json.dumps(julia), copy: notebook(CELLS), "train.py": "import torch\n"}
    answer, result = migrate(write(source, files))
    assert answer.code == 0
    assert {name: data.decode() for name, data in sources(result).items()} == files
    assert rows(result, "change_list") == rows(result, "manual_review") == []
    (row,) = rows(result, "skipped_files")
    mentioned = "mentions CUDA_VISIBLE_DEVICES, cuda, nvidia-smi (first in cell 2)"
    assert (row["File"], row["Reason"].partition("; ")[2]) == ("julia.ipynb", mentioned)


def test_a_notebook_is_analysed(npumigrate, source, tmp_path) -> None:
    write(source, {"n.ipynb": notebook([*CELLS, ("code", "torch.cuda.temperature('a')\n")])})
    write(source, {"run.sh": "export CUDA_VISIBLE_DEVICES=0\n"})
    assert npumigrate("analyze", "-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    found = rows(tmp_path / "project_analysis", "unsupported_api")
    assert [(row["File"], row["Start Line"], row["OP"]) for row in found] == [
        ("n.ipynb:cell 6", "1", "torch.cuda.temperature")
    ]
    # Its modes do not judge commands.
    assert rows(tmp_path / "project_analysis", "skipped_files") == []


@pytest.mark.parametrize(
    ("cells", "mentioned"),
    [
        (
            [
                "%%writefile k.cu\n__global__ void k() {}\n",
                "%%writefile t.py\ntorch.backends.cudnn.x = True\n",
            ],
            "__global__ (first in cell 1)",
        ),
        (
            # Of Databricks: the first two are prose.
            [
                "%md\n# Runs on `cuda`\nas it is",
                "%%html\n<b>nccl</b>",
                "%sql\nSELECT * FROM cuda",
                "%sh\nnvidia-smi",
            ],
            "cuda (first in cell 3)",
        ),
    ],
)
def test_cuda_in_cells_that_are_no_python_is_told(migrate, source, cells, mentioned) -> None:
    write(source, {"n.ipynb": notebook([("code", cell) for cell in cells])})
    answer, result = migrate(source)
    assert answer.code == 0
    (reason,) = reasons(result)
    assert reason.endswith(f"mentions {mentioned}")


def test_commands_in_a_notebook_with_large_outputs_are_told(migrate, source) -> None:
    content = json.loads(notebook(CELLS))
    content["cells"][1]["outputs"] = [{"data": {"image/png": "A" * (5 << 20)}}]
    answer, result = migrate(write(source, {"n.ipynb": json.dumps(content)}))
    assert answer.code == 0
    assert "!npu-smi info" in (result / "n.ipynb").read_text()


def test_every_notebook_is_started(migrate, source) -> None:
    write(source, {"n.ipynb": notebook([("code", "import torch"), ("code", "x = torch.ones(1)")])})
    answer, result = migrate(source, "--mode", "transfer")
    assert answer.code == 0
    cell, _ = json.loads((result / "n.ipynb").read_text())["cells"]
    assert "".join(cell["source"]) == (
        "import torch\nimport torch_npu\nfrom torch_npu.contrib import transfer_to_npu"
    )


def test_lines_in_a_message_are_those_of_the_cell(npumigrate, source, tmp_path) -> None:
    step = "opt.zero_grad()\n    loss = model(x)\n    loss.backward()\n    opt.step()"
    loop = f"for x in data:\n    {step}\n    print(loss.item())\n    print(loss.item())\n"
    write(source, {"n.ipynb": notebook([("code", "import torch\n\n"), ("code", loop)])})
    assert npumigrate("analyze", "-i", source, "-o", tmp_path, "-v", "2.6").code == 0
    (row,) = rows(tmp_path / "project_analysis", "api_performance_advice")
    assert (row["File"], row["Start Line"]) == ("n.ipynb:cell 2", "6")
    assert "(lines 6, 7)" in row["Tips"]


def test_ranks_are_not_started_from_a_notebook(migrate, source) -> None:
    answer, result = migrate(source, "-m", "n.ipynb")
    assert answer.code == 2
    assert answer.err == "npumigrate: n.ipynb (-m/--main) is a notebook: ranks start from a script\n"
    assert not result.exists()


def test_a_cell_with_line_ends_of_another_kind(migrate, source) -> None:
    content = json.loads(notebook([("code", ""), ("code", "x = torch.ones(1).cuda()")]))
    content["cells"][0]["source"] = "import torch\rimport torch_npu\r"
    answer, result = migrate(write(source, {"n.ipynb": json.dumps(content)}))
    assert answer.code == 0
    (row,) = rows(result, "change_list")
    assert (row["File"], row["Start Line"]) == ("n.ipynb:cell 2", "1")


def test_an_import_stays_below_the_magic_of_its_cell(migrate, source) -> None:
    install, move = (
        ("code", "%%capture\n!pip install -q einops"),
        ("code", "def move(x):\n    return x.cuda()"),
    )
    write(source, {"n.ipynb": notebook([install, move])})
    _, result = migrate(source)
    first, second = json.loads((result / "n.ipynb").read_text())["cells"]
    assert "".join(first["source"]) == install[1]
    assert "".join(second["source"]) == "import torch_npu\ndef move(x):\n    return x.npu()"
