"""The command from end to end on small projects."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.results import rows, tree, write

SAMPLES = Path(__file__).parents[2] / "samples"
REPORTS = [
    "change_list.csv",
    "cuda_op_list.csv",
    "manual_review.csv",
    "npumigrate.log",
    "skipped_files.csv",
    "summary.json",
    "unknown_api.csv",
    "unsupported_api.csv",
]


def sources(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in tree(folder).items() if not name.startswith("migration_report/")}


def test_a_project_becomes_an_npu_project(npumigrate, project, tmp_path) -> None:
    before = tree(project)
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6")
    result = tmp_path / "out" / "project_msft"
    assert (answer.code, answer.err) == (0, "")
    assert tree(project) == before
    assert sorted(sources(result)) == sorted(before)
    train = (result / "train.py").read_text()
    assert "import torch_npu" in train
    assert "torch.zeros(2).npu()" in train
    assert "cuda" not in train
    assert (result / "README.txt").read_bytes() == before["README.txt"]
    assert (result / "plain.py").read_bytes() == before["plain.py"]
    assert "3 seen, 2 changed, 0 skipped" in answer.out
    assert f"Result   {result}\n" in answer.out
    assert "\x1b" not in answer.out
    reports = result / "migration_report"
    assert sorted(os.listdir(reports)) == REPORTS
    changes = rows(reports / "change_list.csv")
    files = [change["File"] for change in changes]
    assert files == sorted(files)
    assert set(files) == {"train.py", "models/net.py"}
    lines = [int(change["Start Line"]) for change in changes if change["File"] == "train.py"]
    assert lines == sorted(lines)
    assert {3, 4} <= set(lines)
    assert all(change["Rule"] and change["Operation Type"] and change["Safety"] for change in changes)
    summary = json.loads((reports / "summary.json").read_text(encoding="utf-8"))
    assert summary["changes"]["total"] == summary["reports"]["change_list.csv"] == len(changes)
    assert summary["files"] == {"seen": 3, "changed": 2, "skipped": 0, "other": 0, "other_changed": 0}
    assert summary["torch"].startswith("2.6")


def test_migrate_may_be_spelled_out(npumigrate, project, tmp_path) -> None:
    for number, words in enumerate([[], ["migrate"]]):
        assert npumigrate(*words, "-i", project, "-o", tmp_path / str(number), "-v", "2.6").code == 0
    assert sources(tmp_path / "0" / "project_msft") == sources(tmp_path / "1" / "project_msft")


def test_a_single_file(npumigrate, project, tmp_path) -> None:
    answer = npumigrate("-i", project / "train.py", "-o", tmp_path / "out", "-v", "2.6")
    assert answer.code == 0
    assert ".npu()" in (tmp_path / "out" / "train_msft" / "train.py").read_text()


def test_an_existing_result_is_refused_and_overwritten_on_demand(npumigrate, project, tmp_path) -> None:
    command = ["-i", project, "-o", tmp_path / "out", "-v", "2.6"]
    npumigrate(*command)
    result = tmp_path / "out" / "project_msft"
    first = sources(result)
    (result / "train.py").write_text("mine\n")
    refused = npumigrate(*command)
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert (result / "train.py").read_text() == "mine\n"
    assert npumigrate(*command, "--overwrite").code == 0
    assert sources(result) == first


def test_all_commands_say_the_same_for_any_number_of_processes(npumigrate, project, tmp_path) -> None:
    write(project, {f"more{n}.py": f"import torch\ny = torch.ones({n}).cuda()\n" for n in range(30)})
    found = []
    for jobs in ("1", "3"):
        options = ("-i", project, "-o", tmp_path / jobs, "-v", "2.6", "--jobs", jobs)
        codes = [npumigrate(*command, *options).code for command in ((), ("analyze",))]
        options = ("-v2.6", "--isolated", "--no-cache", "--jobs", jobs, "--output-format", "json")
        linted = npumigrate("lint", project, *options)
        made = {name: data for name, data in tree(tmp_path / jobs).items() if not name.endswith(".log")}
        found.append((codes, made, linted))
    assert found[0] == found[1]
    assert (found[0][0], found[0][2].code) == ([0, 0], 1)
    assert "more29.py" in found[0][2].out


def test_migrating_the_result_changes_nothing(npumigrate, project, tmp_path) -> None:
    npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6")
    once = tmp_path / "out" / "project_msft"
    answer = npumigrate("-i", once, "-o", tmp_path / "again", "-v", "2.6")
    twice = tmp_path / "again" / "project_msft_msft"
    assert "0 changed" in answer.out
    assert sources(twice) == sources(once)
    assert rows(twice / "migration_report" / "change_list.csv") == []


def test_a_folder_of_the_users_where_the_reports_belong(npumigrate, project, tmp_path) -> None:
    (project / "migration_report").mkdir()
    (project / "migration_report" / "notes.txt").write_text("mine")
    answer = npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6")
    assert answer.code == 2
    assert "migration_report" in answer.err
    assert not (tmp_path / "out").exists()


def test_excluded_files_are_copied(npumigrate, project, tmp_path) -> None:
    npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--exclude", "models/")
    result = tmp_path / "project_msft"
    assert (result / "models" / "net.py").read_bytes() == (project / "models" / "net.py").read_bytes()
    assert ".npu()" in (result / "train.py").read_text()


def test_ignored_rules_change_nothing(npumigrate, project, tmp_path) -> None:
    npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--ignore", "NPU1,NPU2", "--ignore", "NPU9")
    assert sources(tmp_path / "project_msft") == sources(project)


def test_rules_of_the_users_own(npumigrate, project, tmp_path) -> None:
    (project / "own.py").write_text("import acme\nacme.cuda.start()\n")
    pack = tmp_path / "mine.yaml"
    pack.write_text(
        "- code: ACME101\n  name: acme-cuda\n  summary: acme.cuda has an NPU form\n  kind: name\n"
        "  match: acme.cuda.start\n  replace: acme.npu.start\n  fix: safe\n"
    )
    npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--rules", pack)
    assert "acme.npu.start()" in (tmp_path / "project_msft" / "own.py").read_text()


def test_a_broken_file_is_copied_and_listed(npumigrate, project, tmp_path) -> None:
    (project / "broken.py").write_text("import torch\nx = torch.cuda.(\n")
    (project / "odd.py").write_bytes(b"import torch\nx = 'cuda \xff'\n")
    answer = npumigrate("-i", project, "-o", tmp_path, "-v", "2.6")
    result = tmp_path / "project_msft"
    assert answer.code == 1
    assert (result / "broken.py").read_bytes() == (project / "broken.py").read_bytes()
    assert (result / "odd.py").read_bytes() == (project / "odd.py").read_bytes()
    skipped = rows(result / "migration_report" / "skipped_files.csv")
    assert [row["File"] for row in skipped] == ["broken.py", "odd.py"]
    assert all(row["Reason"] for row in skipped)
    assert "broken.py: " in answer.out
    assert ".npu()" in (result / "train.py").read_text()


def test_a_broken_file_without_cuda_does_not_matter(npumigrate, project, tmp_path) -> None:
    (project / "broken.py").write_text("x = (\n")
    (project / "odd.py").write_bytes(b"x = '\xff'\n")
    assert npumigrate("-i", project, "-o", tmp_path, "-v", "2.6").code == 0


def obeys_modes() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() != 0


@pytest.mark.skipif(not obeys_modes(), reason="root reads everything")
def test_a_file_that_may_not_be_read_is_listed(npumigrate, project, tmp_path) -> None:
    (project / "train.py").chmod(0)
    answer = npumigrate("-i", project, "-o", tmp_path, "-v", "2.6")
    assert answer.code == 1
    assert "permission denied" in answer.out


@pytest.mark.skipif(not obeys_modes(), reason="root reads everything")
@pytest.mark.parametrize("name", ["train.py", "models"])
@pytest.mark.parametrize("options", [["--diff"], ["-o", "out"]])
def test_an_input_that_may_not_be_read_is_refused(
    npumigrate, project, tmp_path, monkeypatch, name, options
) -> None:
    monkeypatch.chdir(tmp_path)
    (project / name).chmod(0)
    answer = npumigrate("-i", project / name, "-v", "2.6", *options)
    (project / name).chmod(0o700)
    assert answer.code == 2
    assert f"{name} cannot be read: permission denied" in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_the_samples_migrate_and_settle(npumigrate, tmp_path, sample) -> None:
    answer = npumigrate("-i", SAMPLES / sample, "-o", tmp_path / "once", "-v", "2.6")
    assert (answer.code, answer.err) == (0, "")
    once = tmp_path / "once" / f"{sample}_msft"
    texts = {path: path.read_text(encoding="utf-8") for path in once.rglob("*.py")}
    for path, text in texts.items():
        ast.parse(text, str(path))
    assert any("import torch_npu" in text or '"Ascend"' in text for text in texts.values())
    again = npumigrate("-i", once, "-o", tmp_path / "twice", "-v", "2.6")
    assert " 0 changed" in again.out
    assert sources(tmp_path / "twice" / f"{sample}_msft_msft") == sources(once)


def test_no_python_file(npumigrate, tmp_path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("x")
    answer = npumigrate("-i", tmp_path / "project", "-o", tmp_path / "out", "-v", "2.6")
    assert answer.code == 2
    assert "no Python file" in answer.err
    assert not (tmp_path / "out").exists()


def test_output_inside_the_input(npumigrate, project) -> None:
    assert npumigrate("-i", project, "-o", project / "out", "-v", "2.6").code == 0
    assert npumigrate("-i", project, "-o", project / "out", "-v", "2.6", "--overwrite").code == 0
    assert not (project / "out" / "project_msft" / "out").exists() or not list(
        (project / "out" / "project_msft" / "out").iterdir()
    )


def test_transfer_only_imports(npumigrate, project, tmp_path) -> None:
    main = "import torch\n\nif __name__ == '__main__':\n    torch.zeros(2).cuda()\n"
    (project / "main.py").write_text(main)
    assert npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--mode", "transfer").code == 0
    result = tmp_path / "project_msft"
    text = (result / "main.py").read_text()
    assert "from torch_npu.contrib import transfer_to_npu" in text
    assert ".cuda()" in text
    assert (result / "models" / "net.py").read_bytes() == (project / "models" / "net.py").read_bytes()


def test_quiet_prints_nothing(npumigrate, project, tmp_path) -> None:
    answer = npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_verbose_names_each_file(npumigrate, project, tmp_path) -> None:
    answer = npumigrate("-i", project, "-o", tmp_path, "-v", "2.6", "--verbose")
    for name in ("train.py", "models/net.py", "plain.py"):
        assert f"{name}: " in answer.err


def test_names_that_are_not_utf8(npumigrate, project, tmp_path) -> None:
    name = os.fsencode(project) + b"/caf\xe9 +.py"
    try:
        with open(name, "wb") as file:
            file.write(b"import torch\nx = torch.zeros(2).cuda()\n")
    except OSError:
        pytest.skip("this file system wants UTF-8 names")
    assert npumigrate("-i", project, "-o", tmp_path, "-v", "2.6").code == 0
    assert os.path.exists(os.fsencode(tmp_path) + b"/project_msft/caf\xe9 +.py")
    changes = rows(tmp_path / "project_msft" / "migration_report" / "change_list.csv")
    assert r"caf\xe9 +.py" in {change["File"] for change in changes}


def test_chinese_names(npumigrate, project, tmp_path) -> None:
    (project / "训练 脚本.py").write_text("import torch\nx = torch.zeros(2).cuda()\n", encoding="utf-8")
    assert npumigrate("-i", project, "-o", tmp_path, "-v", "2.6").code == 0
    changes = rows(tmp_path / "project_msft" / "migration_report" / "change_list.csv")
    assert "训练 脚本.py" in {change["File"] for change in changes}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program")
def test_diff_gives_what_the_migration_writes(npumigrate, project, tmp_path) -> None:
    (project / "crlf file.py").write_bytes(b"import torch\r\nx = torch.zeros(2).cuda()\r\ny = x.cuda()")
    before = tree(tmp_path)
    command = [sys.executable, "-m", "migrator", "-i", str(project), "-v", "2.6", "--diff"]
    diff = subprocess.run(command, capture_output=True, check=True)
    assert b"4 seen, 3 changed" in diff.stderr
    assert tree(tmp_path) == before
    npumigrate("-i", project, "-o", tmp_path / "out", "-v", "2.6")
    subprocess.run(["patch", "-p1", "--binary", "-s", "-d", str(project)], input=diff.stdout, check=True)
    assert tree(project) == sources(tmp_path / "out" / "project_msft")


@pytest.mark.parametrize("options", [["--diff", "-q"], ["-o", "out"]])
def test_a_closed_pipe_is_no_error(project, tmp_path, monkeypatch, options) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "migrator", "-i", str(project), "-v", "2.6", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_files_that_are_no_python_are_named_and_are_no_error(npumigrate, project, tmp_path) -> None:
    (project / "run.sh").write_text("echo CUDA_VISIBLE_DEVICES\n", encoding="utf-8")
    (project / "ops.cu").write_text("__global__ void scale(float* x) {}\n", encoding="utf-8")
    answer = npumigrate("-i", project, "-o", tmp_path, "-v", "2.6")
    assert answer.code == 0
    assert "Other files that mention CUDA: 2" in answer.out
    result = tmp_path / "project_msft"
    assert (result / "run.sh").read_bytes() == (project / "run.sh").read_bytes()
    named = {row["File"]: row["Reason"] for row in rows(result / "migration_report" / "skipped_files.csv")}
    assert set(named) == {"run.sh", "ops.cu"}
    assert "CUDA_VISIBLE_DEVICES (first in line 1)" in named["run.sh"]
    [operator] = rows(result / "migration_report" / "cuda_op_list.csv")
    assert (operator["File"], operator["OP"], operator["Rule"]) == ("ops.cu", "scale", "NPU652")


def test_strings_left_alone_are_listed_where_that_is_asked_for(npumigrate, tmp_path) -> None:
    source = tmp_path / "project"
    source.mkdir()
    (source / "a.py").write_text(
        "import torch\nn = {'cuda': 0}\nx = torch.ones(1, device='cuda')\ny = ['nccl']\n"
    )
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6", "--show-left-alone").code == 0
    table = tmp_path / "project_msft/migration_report/left_alone.csv"
    assert table.read_text().splitlines()[1:] == [
        "a.py,2,2,cuda,'cuda' is left alone (a dictionary's key),NPU995,info"
    ]
    assert npumigrate("-i", source, "-o", tmp_path, "-v", "2.6", "--overwrite").code == 0
    assert not table.exists()
