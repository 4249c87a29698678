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

from tests.reading import rows, sources, tree, write

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


def test_a_project_becomes_an_npu_project(migrate, project, tmp_path) -> None:
    before = tree(project)
    answer, result = migrate(project)
    assert (answer.code, answer.err) == (0, "")
    assert tree(project) == before
    made = sources(result)
    assert made.keys() == before.keys()
    train = made["train.py"].decode()
    assert "import torch_npu" in train
    assert "torch.zeros(2).npu()" in train
    assert "cuda" not in train
    for name in ("README.txt", "plain.py"):
        assert made[name] == before[name]
    assert sorted(os.listdir(result / "migration_report")) == REPORTS
    assert "3 seen, 2 changed, 0 skipped" in answer.out
    assert f"Result   {result}\n" in answer.out
    assert "\x1b" not in answer.out


def test_every_change_has_a_row(migrate, project) -> None:
    _, result = migrate(project)
    changes = rows(result, "change_list")
    files = [change["File"] for change in changes]
    assert files == sorted(files)
    assert set(files) == {"train.py", "models/net.py"}
    lines = [int(change["Start Line"]) for change in changes if change["File"] == "train.py"]
    assert lines == sorted(lines)
    assert {3, 4} <= set(lines)
    assert all(change["Rule"] and change["Operation Type"] and change["Safety"] for change in changes)
    summary = json.loads((result / "migration_report/summary.json").read_text(encoding="utf-8"))
    assert summary["changes"]["total"] == summary["reports"]["change_list.csv"] == len(changes)
    assert summary["files"] == {"seen": 3, "changed": 2, "skipped": 0, "other": 0, "other_changed": 0}
    assert summary["torch"].startswith("2.6")


def test_a_single_file(migrate, project) -> None:
    answer, result = migrate(project / "train.py")
    assert answer.code == 0
    assert ".npu()" in (result / "train.py").read_text()


def test_an_existing_result_is_refused_and_overwritten_on_demand(migrate, project) -> None:
    _, result = migrate(project)
    first = sources(result)
    (result / "train.py").write_text("mine\n")
    refused, _ = migrate(project)
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert (result / "train.py").read_text() == "mine\n"
    assert migrate(project, "--overwrite")[0].code == 0
    assert sources(result) == first


@pytest.mark.parametrize("command", ["migrate", "analyze", "lint"])
def test_the_result_is_the_same_for_any_number_of_processes(npumigrate, project, tmp_path, command) -> None:
    for number in range(30):
        (project / f"more{number}.py").write_text(f"import torch\ny = torch.ones({number}).cuda()\n")
    found = []
    for jobs in ("1", "3"):
        out = tmp_path / jobs
        options = ["--isolated", "-n", "--output-format=json", "-o", out / "a.json"]
        out.mkdir()
        given = options if command == "lint" else ["-o", out]
        answer = npumigrate(command, project, "-v2.6", "--jobs", jobs, *given)
        made = {name: data for name, data in tree(out).items() if not name.endswith(".log")}
        found.append((answer.code, made))
    assert found[0] == found[1]
    assert command == "analyze" or any(b"more29.py" in data for data in found[0][1].values())


def test_migrating_the_result_changes_nothing(migrate, project) -> None:
    _, once = migrate(project)
    answer, twice = migrate(once, out="again")
    assert "0 changed" in answer.out
    assert sources(twice) == sources(once)
    assert rows(twice, "change_list") == []


def test_a_folder_of_the_users_where_the_reports_belong(migrate, project, tmp_path) -> None:
    write(project, {"migration_report/notes.txt": "mine"})
    answer, _ = migrate(project)
    assert answer.code == 2
    assert "migration_report" in answer.err
    assert not (tmp_path / "out").exists()


def test_excluded_files_and_ignored_rules(migrate, project) -> None:
    _, result = migrate(project, "--exclude", "models/")
    assert (result / "models" / "net.py").read_bytes() == (project / "models" / "net.py").read_bytes()
    assert ".npu()" in (result / "train.py").read_text()
    _, result = migrate(project, "--ignore", "NPU1,NPU2", "--ignore", "NPU9", out="more")
    assert sources(result) == sources(project)


def test_rules_of_the_users_own(migrate, project, tmp_path) -> None:
    rule = "  name: acme-cuda\n  summary: acme.cuda has an NPU form\n  kind: name\n"
    match = "  match: acme.cuda.start\n  replace: acme.npu.start\n  fix: safe\n"
    write(tmp_path, {"mine.yaml": "- code: ACME101\n" + rule + match})
    write(project, {"own.py": "import acme\nacme.cuda.start()\n"})
    _, result = migrate(project, "--rules", tmp_path / "mine.yaml")
    assert "acme.npu.start()" in (result / "own.py").read_text()


def test_a_broken_file_is_copied_and_listed(migrate, project) -> None:
    broken = {"broken.py": "import torch\nx = torch.cuda.(\n", "odd.py": b"import torch\nx = 'cuda \xff'\n"}
    answer, result = migrate(write(project, broken))
    assert answer.code == 1
    for name in broken:
        assert (result / name).read_bytes() == (project / name).read_bytes()
    skipped = rows(result, "skipped_files")
    assert [row["File"] for row in skipped] == ["broken.py", "odd.py"]
    assert all(row["Reason"] for row in skipped)
    assert "broken.py: " in answer.out
    assert ".npu()" in (result / "train.py").read_text()


def test_a_broken_file_without_cuda_does_not_matter(migrate, project) -> None:
    assert migrate(write(project, {"broken.py": "x = (\n", "odd.py": b"x = '\xff'\n"}))[0].code == 0


def obeys_modes() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() != 0


@pytest.mark.skipif(not obeys_modes(), reason="root reads everything")
def test_a_file_that_may_not_be_read_is_listed(migrate, project) -> None:
    (project / "train.py").chmod(0)
    answer, _ = migrate(project)
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
    assert f"{name}: cannot be read: permission denied" in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_the_samples_migrate_and_settle(migrate, sample) -> None:
    answer, once = migrate(SAMPLES / sample)
    assert (answer.code, answer.err) == (0, "")
    texts = {path: path.read_text(encoding="utf-8") for path in once.rglob("*.py")}
    for path, text in texts.items():
        ast.parse(text, str(path))
    assert any("import torch_npu" in text or '"Ascend"' in text for text in texts.values())
    again, twice = migrate(once, out="twice")
    assert " 0 changed" in again.out
    assert sources(twice) == sources(once)


def test_no_python_file(migrate, tmp_path) -> None:
    answer, _ = migrate(write(tmp_path / "project", {"a.txt": "x"}))
    assert answer.code == 2
    assert "no Python file" in answer.err
    assert not (tmp_path / "out").exists()


def test_output_inside_the_input(migrate, project) -> None:
    inner = "project/out"
    for options in ([], ["--overwrite"]):
        answer, result = migrate(project, *options, out=inner)
        assert answer.code == 0
        assert not (result / "out").exists() or not list((result / "out").iterdir())


def test_transfer_only_imports(migrate, project) -> None:
    main = "import torch\n\nif __name__ == '__main__':\n    torch.zeros(2).cuda()\n"
    answer, result = migrate(write(project, {"main.py": main}), "--mode", "transfer")
    assert answer.code == 0
    text = (result / "main.py").read_text()
    assert "from torch_npu.contrib import transfer_to_npu" in text
    assert ".cuda()" in text
    assert (result / "models" / "net.py").read_bytes() == (project / "models" / "net.py").read_bytes()


def test_quiet_prints_nothing_and_verbose_names_each_file(migrate, project) -> None:
    answer, _ = migrate(project, "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    answer, _ = migrate(project, "--verbose", "--overwrite")
    for name in ("train.py", "models/net.py", "plain.py"):
        assert f"{name}: " in answer.err


@pytest.mark.parametrize("name", [b"caf\xe9 +.py".decode("utf-8", "surrogateescape"), "训练 脚本.py"])
def test_odd_names(migrate, project, name) -> None:
    try:
        write(project, {name: "import torch\nx = torch.zeros(2).cuda()\n"})
    except OSError:
        pytest.skip("this file system wants UTF-8 names")
    answer, result = migrate(project)
    assert answer.code == 0
    assert (result / name).exists()
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    assert shown in {change["File"] for change in rows(result, "change_list")}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program")
def test_diff_gives_what_the_migration_writes(migrate, project, tmp_path) -> None:
    (project / "crlf file.py").write_bytes(b"import torch\r\nx = torch.zeros(2).cuda()\r\ny = x.cuda()")
    before = tree(tmp_path)
    command = [sys.executable, "-m", "migrator", "-i", str(project), "-v", "2.6", "--diff"]
    diff = subprocess.run(command, capture_output=True, check=True)
    assert b"4 seen, 3 changed" in diff.stderr
    assert tree(tmp_path) == before
    _, result = migrate(project)
    subprocess.run(["patch", "-p1", "--binary", "-s", "-d", str(project)], input=diff.stdout, check=True)
    assert tree(project) == sources(result)


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


def test_files_that_are_no_python_are_named_and_are_no_error(migrate, project) -> None:
    write(
        project, {"run.sh": "echo CUDA_VISIBLE_DEVICES\n", "ops.cu": "__global__ void scale(float* x) {}\n"}
    )
    answer, result = migrate(project)
    assert answer.code == 0
    assert "Other files that mention CUDA: 2" in answer.out
    assert (result / "run.sh").read_bytes() == (project / "run.sh").read_bytes()
    named = {row["File"]: row["Reason"] for row in rows(result, "skipped_files")}
    assert set(named) == {"run.sh", "ops.cu"}
    assert "CUDA_VISIBLE_DEVICES (first in line 1)" in named["run.sh"]
    [operator] = rows(result, "cuda_op_list")
    assert (operator["File"], operator["OP"], operator["Rule"]) == ("ops.cu", "scale", "NPU652")


@pytest.mark.parametrize(("other", "severity"), [("", "info"), ("y = _ext.blur(x)\n", "error")])
def test_an_operator_that_the_result_does_not_call_is_no_error(migrate, tmp_path, other, severity) -> None:
    bound = (
        "__global__ void query_kernel(const float* x) {}\n"
        "at::Tensor ball_query(at::Tensor new_xyz, at::Tensor xyz, const float radius, const int nsample) {\n"
        "  query_kernel<<<1, 32>>>(xyz.data_ptr<float>()); return xyz; }\n"
        "at::Tensor blur(at::Tensor x) { query_kernel<<<1, 32>>>(nullptr); return x; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("ball_query", &ball_query);\n'
        '  m.def("blur", &blur); }\n'
    )
    build = (
        "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
        'setup(ext_modules=[CUDAExtension("points._ext", ["points/query.cu"])])\n'
    )
    used = (
        "import torch\nfrom points import _ext\nx = _ext.ball_query(torch.ones(1), torch.ones(1), 0.2, 16)\n"
    )
    files = {"setup.py": build, "points/__init__.py": "", "points/query.cu": bound, "train.py": used + other}
    _answer, result = migrate(write(tmp_path / "project", files))
    found = [row for row in rows(result, "cuda_op_list") if row["Rule"] in ("NPU651", "NPU652", "NPU653")]
    assert {row["File"] for row in found} >= {"setup.py", "points/query.cu"}
    assert {row["Severity"] for row in found} == {severity}


def test_strings_left_alone_are_listed_where_that_is_asked_for(migrate, tmp_path) -> None:
    text = "import torch\nn = {'cuda': 0}\nx = torch.ones(1, device='cuda')\ny = ['nccl']\n"
    source = write(tmp_path / "project", {"a.py": text})
    answer, result = migrate(source, "--show-left-alone")
    assert answer.code == 0
    table = result / "migration_report/left_alone.csv"
    assert table.read_text().splitlines()[1:] == [
        "a.py,2,2,cuda,'cuda' is left alone (a dictionary's key),NPU995,info"
    ]
    assert migrate(source, "--overwrite")[0].code == 0
    assert not table.exists()
