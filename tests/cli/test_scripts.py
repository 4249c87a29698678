"""What becomes of shell scripts in each command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reading import rows, write


def test_a_migration_changes_scripts_and_lists_it(migrate, tmp_path: Path) -> None:
    script = b"#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0  # \xe4\xb8\xad\r\n"
    source = write(tmp_path / "project", {"train.py": "import torch\ntorch.cuda.init()\n", "run": script})
    (source / "run").chmod(0o755)
    answer, result = migrate(source)
    assert "1 seen, 1 changed, other files: 1 changed" in answer.out
    changed = b"#!/bin/sh\nexport ASCEND_RT_VISIBLE_DEVICES=0  # \xe4\xb8\xad\r\n"
    assert (result / "run").read_bytes() == changed
    assert (result / "run").stat().st_mode & 0o111
    assert "run,2,2,MODIFY," in (result / "migration_report" / "change_list.csv").read_text()
    assert migrate(source, "--diff")[0].out.count("+export ASCEND_RT") == 1


@pytest.mark.parametrize("comment", ["noqa: NPU410", "npumigrate: ignore[NPU410]", "noqa"])
def test_a_comment_suppresses_a_finding(npumigrate, tmp_path: Path, monkeypatch, comment: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sh").write_text(
        f"export CUDA_VISIBLE_DEVICES=0  # {comment}\n# {comment}\nexport CUDA_VISIBLE_DEVICES=1\n"
        "export CUDA_VISIBLE_DEVICES=2\n"
    )
    answer = npumigrate("lint", "--isolated", "--no-cache", "-v2.6", "--output-format", "concise")
    assert [line.split(":")[1] for line in answer.out.splitlines() if line.startswith("a.sh")] == ["4"]
    npumigrate("lint", "--isolated", "--no-cache", "-v2.6", "--fix")
    assert (tmp_path / "a.sh").read_text().splitlines()[-1] == "export ASCEND_RT_VISIBLE_DEVICES=2"


@pytest.mark.parametrize(
    ("script", "after"),
    [
        # What is set under its old name is asked for by that.
        ('export CUDA_VISIBLE_DEVICES=-1\necho "$CUDA_VISIBLE_DEVICES"\n', None),
        ("CUDA_VISIBLE_DEVICES=GPU-$ID python a.py\n", None),
        ("CUDA_VISIBLE_DEVICES=0,$ID python a.py\n", "ASCEND_RT_VISIBLE_DEVICES=0,$ID python a.py\n"),
        ("env -u CUDA_VISIBLE_DEVICES python a.py\n", "env -u ASCEND_RT_VISIBLE_DEVICES python a.py\n"),
        (
            "srun --export=ALL,CUDA_VISIBLE_DEVICES=0 python a.py\n",
            "srun --export=ALL,ASCEND_RT_VISIBLE_DEVICES=0 python a.py\n",
        ),
        (
            "mpirun -x CUDA_VISIBLE_DEVICES -genv NCCL_IB_TIMEOUT 30 -genv NCCL_IB_TC 132 ./solver\n",
            "mpirun -x ASCEND_RT_VISIBLE_DEVICES -genv NCCL_IB_TIMEOUT 30 -genv HCCL_RDMA_TC 132 ./solver\n",
        ),
        (
            'D=cuda\n[ "$D" = cuda ] && python a.py --device "$D"\n',
            'D=npu\n[ "$D" = npu ] && python a.py --device "$D"\n',
        ),
        ('D=cuda\n[[ "$D" == cuda* ]] && python a.py --device "$D"\n', None),
    ],
)
def test_a_name_and_a_value_are_the_same_in_all_of_a_script(script: str, after: str | None) -> None:
    from migrator.core.examples import migrated

    assert migrated(script, "2.6", False, name="run.sh").text == after


def test_documents_are_migrated_where_that_is_asked_for(migrate, tmp_path: Path) -> None:
    train = "import sys\nimport torch\ntorch.ones(1).to(sys.argv[1])\n"
    text = "`train.py cuda` on cuda:\n\n```sh\npython train.py cuda\n```\n```\npython train.py cuda\n```\n"
    source = write(tmp_path / "project", {"train.py": train, "README.md": text})
    _, result = migrate(source)
    assert (result / "README.md").read_text() == text
    (row,) = rows(result, "manual_review")
    assert (row["File"], row["Start Line"], row["Severity"]) == ("README.md", "4", "info")
    assert row["Message"] == "commands in this document are for CUDA (lines: 1)"
    migrate(source, "--overwrite", "--docs")
    assert (result / "README.md").read_text() == text.replace(
        "```sh\npython train.py cuda", "```sh\npython train.py npu"
    )
    review = (result / "migration_report/manual_review.csv").read_text()
    assert "README" not in review


def test_a_document_keeps_what_it_gives_to_programs_of_others(migrate, tmp_path: Path) -> None:
    train = "import argparse\nimport torch\nP = argparse.ArgumentParser()\n"
    train += "P.add_argument('--device', default='cuda')\ntorch.ones(1, device=P.parse_args().device)\n"
    own = "python train.py --device {0}\npython -m pack.tool --device {0}\npack-export --device {0}\n"
    others = "llama-server --device cuda\npython -m other.tool --device cuda\n"
    files = {
        "train.py": train,
        "pack/__init__.py": "",
        "README.md": f"```sh\n{own.format('cuda')}{others}```\n",
    }
    _, result = migrate(write(tmp_path / "project", files), "--docs")
    assert (result / "README.md").read_text() == f"```sh\n{own.format('npu')}{others}```\n"
    found = [(row["Start Line"], row["Severity"]) for row in rows(result, "manual_review")]
    assert found == [("5", "info"), ("6", "info")]


def test_a_script_beside_which_there_is_one_for_npus_stays(npumigrate, tmp_path: Path) -> None:
    text = "export CUDA_VISIBLE_DEVICES=0\nexport CUBLAS_WORKSPACE_CONFIG=:4096:8\npython train.py\n"
    files = {"train.py": "import torch\n", "run_gpu.sh": text, "run_npu.sh": text, "eval_gpu.sh": text}
    npumigrate("-i", write(tmp_path / "project", files), "-o", tmp_path, "-v", "2.6")
    result = tmp_path / "project_msft"
    assert (result / "run_gpu.sh").read_text() == text
    assert "ASCEND_RT_VISIBLE_DEVICES" in (result / "eval_gpu.sh").read_text()
    review = rows(result, "manual_review")
    said = {row["Rule"]: row["Message"] for row in review if row["File"] == "run_gpu.sh"}
    assert "the project has a separate file for NPUs" in said["NPU410"]
    assert "left unchanged" not in said["NPU411"]  # it has no fix
