"""Programs on Horovod: the module that stands for it in the result, and what imports it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrator.data_folders import data_folder
from tests.reading import python_files, rows

TRAIN = "import torch\n\n{hvd}.init()\nprint(torch.ones(1).cuda(), {hvd}.rank())\n"


@pytest.mark.parametrize(
    ("before", "hvd", "after", "new"),
    [
        ("import horovod.torch as hvd\n", "hvd", "import ascend_horovod as hvd\n", "hvd"),
        ("import horovod.torch\n", "horovod.torch", "import ascend_horovod\n", "ascend_horovod"),
        ("from horovod import torch as hvd\n", "hvd", "import ascend_horovod as hvd\n", "hvd"),
        (
            "import math, horovod.torch as hvd\nprint(math)\n",
            "hvd",
            "import math\nimport ascend_horovod as hvd\nprint(math)\n",
            "hvd",
        ),
        (
            "import horovod.torch as hvd\nfrom horovod.torch import rank as own\nprint(own())\n",
            "hvd",
            "import ascend_horovod as hvd\nfrom ascend_horovod import rank as own\nprint(own())\n",
            "hvd",
        ),
        (
            "import horovod.torch as hvd\nfrom horovod.torch.mpi_ops import size\nprint(size())\n",
            "hvd",
            "import ascend_horovod as hvd\nfrom ascend_horovod import size\nprint(size())\n",
            "hvd",
        ),
    ],
)
def test_each_way_to_import_it(result_of, before: str, hvd: str, after: str, new: str) -> None:
    result = result_of({"train.py": before + TRAIN.format(hvd=hvd)})
    expected = (after + TRAIN.format(hvd=new)).replace("cuda()", "npu()")
    expected = expected.replace("import torch\n\n", "import torch\nimport torch_npu\n\n")
    assert (result / "train.py").read_text() == expected
    assert (result / "ascend_horovod.py").is_file()
    assert {row["Safety"] for row in rows(result, "change_list") if row["Rule"] == "NPU930"} == {"unsafe"}
    assert not any(row["Rule"] == "NPU614" for row in rows(result, "manual_review"))


def test_a_package_and_its_script(result_of) -> None:
    files = {
        "acme/__init__.py": "",
        "acme/comm.py": "import horovod.torch as hvd\n\n\ndef is_first():\n    return hvd.rank() == 0\n",
        "acme/train.py": "import horovod.torch as hvd\nfrom acme.comm import is_first\n\nhvd.init()\n",
        "main.py": "import torch\nimport acme.train\n",
    }
    result = result_of(files)
    assert "from acme import ascend_horovod as hvd\n" in (result / "acme/comm.py").read_text()
    assert (result / "acme/ascend_horovod.py").is_file()
    assert not (result / "ascend_horovod.py").exists()


OTHER_WAYS = [
    "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\nif hvd: hvd.init()\n",
    "import torch.distributed as dist\nimport horovod.torch as hvd\nif x:\n    hvd.init()\nelse:\n"
    "    dist.init_process_group('nccl')\n",
    "def f(args):\n    if args.horovod:\n        import horovod.torch as hvd\n        hvd.init()\n",
]


@pytest.mark.parametrize("text", OTHER_WAYS)
def test_horovod_as_one_of_several_ways_stays(result_of, text: str) -> None:
    result = result_of({"train.py": "import torch\n" + text})
    assert "import horovod.torch as hvd" in (result / "train.py").read_text()
    assert not (result / "ascend_horovod.py").exists()
    assert "NPU614" in [row["Rule"] for row in rows(result, "manual_review")]


@pytest.mark.parametrize(
    "options", [("-v", "2.6", "--safe-only"), ("-v", "2.6", "--ignore", "NPU930"), ("-v", "1.8.1")]
)
def test_it_can_be_left_out(result_of, options: tuple[str, ...]) -> None:
    text = "import horovod.torch as hvd\nimport torch\n\nhvd.init()\n"
    result = result_of({"train.py": text}, *options)
    assert (result / "train.py").read_text() == text
    assert not (result / "ascend_horovod.py").exists()


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("hvd.join()", "error"),
        ("state = hvd.elastic.TorchState(torch)", "error"),
        ("group = hvd.ProcessSet([0])", "error"),
        ("x = hvd.allreduce(torch.ones(1), op=hvd.Adasum)", "warning"),
        ("horovod.run(print, np=2)", "error"),
    ],
)
def test_what_it_has_not_is_reported(result_of, line: str, severity: str) -> None:
    text = f"import horovod\nimport horovod.torch as hvd\nimport torch\n\nhvd.init()\n{line}\n"
    result = result_of({"train.py": text})
    found = [row for row in rows(result, "unsupported_api") if row["Rule"] == "NPU931"]
    assert [row["Severity"] for row in found] == [severity]


def test_it_comes_with_the_run_time_patching(result_of) -> None:
    text = "import horovod.torch as hvd\nimport torch\n\nif __name__ == '__main__':\n    hvd.init()\n"
    result = result_of({"train.py": text}, "-v", "2.6", "--mode", "transfer")
    assert "import ascend_horovod as hvd\n" in (result / "train.py").read_text()
    assert "transfer_to_npu" in (result / "train.py").read_text()
    assert (result / "ascend_horovod.py").is_file()


def test_a_second_migration_changes_nothing(result_of, npumigrate, tmp_path: Path) -> None:
    first = result_of({"train.py": "import horovod.torch as hvd\n" + TRAIN.format(hvd="hvd")})
    assert npumigrate(first, "-o", tmp_path / "again", "-v", "2.6").code == 0
    assert python_files(tmp_path / "again" / "p_msft_msft") == python_files(first)


def test_ranks_are_found_as_in_converted_programs(result_of) -> None:
    """The module is a file by itself, and has the functions of reports/distributed/ranks.py in it."""
    result = result_of({"train.py": "import horovod.torch as hvd\n" + TRAIN.format(hvd="hvd")})

    def functions(file: Path) -> dict[str, str]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        return {each.name: ast.dump(each) for each in tree.body if isinstance(each, ast.FunctionDef)}

    ranks = functions(data_folder("reports") / "distributed" / "ranks.py")
    assert ranks.items() <= functions(result / "ascend_horovod.py").items()
