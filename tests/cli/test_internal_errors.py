"""A mistake of ours, in any stage, costs the file at which it strikes: never the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.reading import rows, write

HOROVOD = """\
import torch
import horovod.torch as hvd

hvd.init()
torch.cuda.set_device(hvd.local_rank())
"""
CLASS = "class Net:\n    def cuda(self):\n        return torch\n\n\ntorch.cuda.init()\n"


def failing(monkeypatch: pytest.MonkeyPatch, module: str, function: str, file: str = "'bad.") -> None:
    """Let a function fail where one of its arguments has to do with a file."""
    package: Any = __import__(f"migrator.{module}", fromlist=["x"])
    real = getattr(package, function)

    def fails(*arguments: Any, **named: Any) -> Any:
        if any(file in repr(getattr(each, "files", each)) for each in arguments):
            raise KeyError("gone")
        return real(*arguments, **named)

    monkeypatch.setattr(package, function, fails)


@pytest.fixture
def broken(project: Path) -> Path:
    """A project with files on which a stage may fail."""
    kernel, script = "__global__ void scale(float* x) {}\n", "export CUDA_VISIBLE_DEVICES=0\n"
    return write(project, {"bad.py": "import torch\n" + CLASS, "bad.cu": kernel, "bad.ps1": script})


def skipped(result: Path) -> list[tuple[str, str]]:
    found = [(row["File"], row["Reason"]) for row in rows(result, "skipped_files")]
    return [row for row in found if "internal" in row[1]]


GONE = "internal error, file left unchanged: KeyError('gone')"


@pytest.mark.parametrize(
    ("module", "function", "file"),
    [
        ("project.facts", "scan_file", "bad.py"),
        ("project.entry", "candidate", "bad.py"),
        ("native.functions", "scan_native", "bad.cu"),
        ("run.project_files", "look_at", "bad.ps1"),
        ("run.project_files", "document", "bad.py"),
        ("run.project_files", "unified_diff", ""),
    ],
)
def test_every_stage_is_guarded(migrate, broken, monkeypatch, module, function, file) -> None:
    failing(monkeypatch, module, function, "name='bad.ps1" if function == "look_at" else "'bad.")
    answer, result = migrate(broken, "-j", 1)
    assert (answer.code, skipped(result)) == ((1, [(file, GONE)]) if file else (0, []))
    if file:
        assert (result / file).read_bytes() == (broken / file).read_bytes()
        assert "in fails" in (result / "migration_report" / "npumigrate.log").read_text()
    assert "x.npu()" in (result / "models" / "net.py").read_text()


@pytest.mark.parametrize(
    "function", ["distributed.convert.load", "distributed.convert._plan", "draft.Draft.converted"]
)
def test_a_conversion_for_many_cards_is_guarded(npumigrate, project, tmp_path, monkeypatch, function) -> None:
    def fails(*_arguments: Any, **_named: Any) -> Any:
        raise KeyError("gone")

    monkeypatch.setattr(f"migrator.convert.{function}", fails)
    (project / "bad.py").write_text("import torch\nx = torch.ones(1).cuda()\nx.backward()\n")
    answer = npumigrate(
        *("-i", project, "-o", tmp_path / "out", "-v", "2.6", "-j", 1, "--distributed", "-m", "bad.py")
    )
    result = tmp_path / "out" / "project_msft_multi"
    assert (answer.code, skipped(result)) == (1, [("bad.py", GONE)])
    assert "still trains on one device: internal error: KeyError('gone') (see npumigrate.log" in answer.out
    assert "x.npu()" in (result / "models" / "net.py").read_text()


@pytest.mark.parametrize(
    ("module", "function"),
    [("project.facts", "scan_file"), ("lint.file", "document"), ("lint.suppressions", "read")],
)
def test_lint_tells_of_the_file_and_goes_on(npumigrate, broken, monkeypatch, module, function) -> None:
    monkeypatch.chdir(broken)
    (broken / "bad.py").write_text("'bad.' " + CLASS)
    failing(monkeypatch, module, function)
    answer = npumigrate("lint", "--isolated", "--no-cache", "-v2.6", "-j1")
    assert answer.code == 2
    assert [line.partition("; ")[0] for line in answer.err.splitlines() if "internal" in line] == [
        f"npumigrate: bad.py: {GONE}"
    ]
    trace = Path(answer.err.splitlines()[0].partition("details: ")[2]).read_text()
    assert trace.startswith("npumigrate ")
    assert "in fails" in trace
    assert "train.py" in answer.out


@pytest.mark.parametrize("mode", ["third_party", "torch_apis"])
def test_analyze_tells_of_the_file_and_goes_on(npumigrate, broken, tmp_path, monkeypatch, mode) -> None:
    failing(monkeypatch, "analyze.third_party.tables", "scan_module")
    failing(monkeypatch, "run.project_files", "document")
    answer = npumigrate("analyze", "-i", broken, "-o", tmp_path / "out", "-v", "2.6", "-m", mode, "-j", 1)
    assert answer.code == 1
    text = (tmp_path / "out" / "project_analysis" / "skipped_files.csv").read_text()
    assert f'bad.py,"{GONE}"' in text or f"bad.py,{GONE}" in text


def test_all_files_together_are_guarded(migrate, broken, monkeypatch) -> None:
    failing(monkeypatch, "project.project", "catalog", "")
    answer, result = migrate(broken, "-j", 1)
    assert answer.code == 0
    log = (result / "migration_report" / "npumigrate.log").read_text()
    assert "the project's CUDA operators are not known" in log


@pytest.mark.parametrize("newline", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("more", ["", "i = 1\nprint(f\"{f'{i}'}\")\n"])
def test_horovod_with_any_line_ends(migrate, project, newline, more) -> None:
    (project / "bad.py").write_bytes((HOROVOD + more).replace("\n", newline).encode())
    answer, result = migrate(project, "-j", 1)
    assert answer.code == 0
    data = (result / "bad.py").read_bytes()
    assert b"import ascend_horovod as hvd" in data
    assert data.count(newline.encode()) == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
