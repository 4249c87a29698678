"""The launcher that a migration writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from migrator.cli.main import run

DDP = """\
import torch
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    loss.backward()

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "train.py").write_text(DDP)
    return folder


def migrate(project: Path, *more: str) -> tuple[int, Path]:
    out = project.parent / "out"
    code = run(["-i", str(project), "-o", str(out), "-v", "2.6", "--overwrite", *more])
    return code, out / f"{project.name}_msft"


def told(script: Path) -> str:
    wanted = ("entry=", "module=", "module_root=")
    lines = script.read_text().splitlines()
    return " ".join([line for line in lines if line.startswith(wanted)] + ways(script))


def ways(script: Path) -> list[str]:
    return [
        line.strip()
        for line in script.read_text().splitlines()
        if line.endswith(";;") and ") ranks_by=" in line
    ]


def test_the_script_that_was_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = migrate(project)
    script = result / "run_distributed_npu.sh"
    assert code == 0
    assert os.access(script, os.X_OK)
    assert told(script) == "entry=train.py module='' module_root='' train.py) ranks_by=launcher ;;"
    assert not re.search("@[A-Z]", script.read_text())
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    assert "run_distributed_npu.sh starts train.py" in capsys.readouterr().out
    assert json.loads((result / "migration_report/summary.json").read_text())["entry"] == "train.py"


def test_the_script_that_was_named(project: Path) -> None:
    (project / "tools").mkdir()
    (project / "tools" / "it's mine.py").write_text("print(1)\n")
    result = migrate(project, "-m", "tools/it's mine.py")[1]
    line = subprocess.run(
        ["bash", "-c", 'eval "$(grep ^entry= run_distributed_npu.sh)"; printf %s "$entry"'],
        cwd=result,
        capture_output=True,
        text=True,
    )
    assert line.stdout == "tools/it's mine.py"


def test_a_name_that_is_no_file_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate(project, "--main", "no.py")[0] == 2
    assert capsys.readouterr().err == f"npumigrate: no.py (-m/--main) is not a file in {project}\n"
    assert not (project.parent / "out").exists()


def test_a_file_beside_the_one_that_is_migrated_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "other.py").write_text("import torch\n")
    assert migrate(project / "train.py", "--main", "other.py")[0] == 2
    expected = f"npumigrate: other.py (-m/--main) is not a file in {project / 'train.py'}\n"
    assert capsys.readouterr().err == expected


def test_a_module_with_relative_imports(project: Path) -> None:
    (project / "train.py").unlink()
    package = project / "src" / "tool"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "train.py").write_text("from .data import load\n" + DDP)
    script = migrate(project)[1] / "run_distributed_npu.sh"
    assert told(script) == (
        "entry=src/tool/train.py module=tool.train module_root=src src/tool/train.py) ranks_by=launcher ;;"
    )


def test_a_program_for_one_card_gets_one_rank(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text("for x in y:\n    x.cuda().backward()\n")
    script = migrate(project)[1] / "run_distributed_npu.sh"
    assert told(script).endswith("train.py) ranks_by=none ;;")
    assert "with one rank: no use of ranks was found" in capsys.readouterr().out


def test_a_program_that_starts_its_ranks_gets_its_options(project: Path, capsys) -> None:
    spawns = DDP.replace(
        '"__main__":\n    main()', '"__main__":\n    torch.multiprocessing.spawn(main, nprocs=args.gpus)'
    )
    (project / "train.py").write_text("parser.add_argument('-g', '--gpus', type=int)\n" + spawns)
    script = migrate(project)[1] / "run_distributed_npu.sh"
    assert ways(script) == ["train.py) ranks_by=program program_options=(--gpus %NPROC%) ;;"]
    assert "starts train.py, which starts its own ranks" in capsys.readouterr().out


def test_the_projects_own_file_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run_distributed_npu.sh").write_text("mine\n")
    assert (migrate(project)[1] / "run_distributed_npu.sh").read_text() == "mine\n"
    assert "belongs to the project" in capsys.readouterr().out


def test_a_library_gets_none(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").rename(project / "layers.py")
    (project / "layers.py").write_text("import torch\n\ndef f(x):\n    return x.cuda()\n")
    assert not (migrate(project)[1] / "run_distributed_npu.sh").exists()
    assert "give it with -m FILE" in capsys.readouterr().out


def test_torch_versions_differ(project: Path) -> None:
    new = (migrate(project)[1] / "run_distributed_npu.sh").read_text()
    run(["-i", str(project), "-o", str(project.parent / "old"), "-v", "1.11"])
    old = (project.parent / "old/proj_msft/run_distributed_npu.sh").read_text()
    assert "set_default HCCL_ASYNC_ERROR_HANDLING 1\n" in old
    assert "HCCL_ASYNC_ERROR_HANDLING" not in new
