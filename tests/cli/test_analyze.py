"""``npumigrate analyze`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.analyze import run as project_analysis
from migrator.analyze.third_party import tables
from migrator.cli.main import run
from tests.reading import rows, tree, write

HELPERS = """
import torch
raise RuntimeError("this file was run")
def make(n):
    return torch.zeros(n)
def image():
    return object()
TABLE = torch.ones(4)
class Base(torch.nn.Module):
    def __init__(self):
        self.rows = torch.ones(3)
"""
USE = """
import torch
from pkg import helpers
from pkg.helpers import Base, image, make, TABLE
make(3).mode()
image().mode()
helpers.make(2).mode()
TABLE.mode()
class Child(Base):
    def f(self):
        return self.rows.mode()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"pkg/__init__.py": "", "pkg/helpers.py": HELPERS, "use.py": USE}
    return write(tmp_path / "project", files)


def analyze(project: Path, *options: str) -> tuple[int, Path]:
    out = project.parent / "out"
    code = run(["analyze", "-i", str(project), "-o", str(out), "-v", "2.6", *options])
    return code, out / "project_analysis"


def test_the_sources_stay_and_the_reports_are_beside_them(project: Path) -> None:
    (project / "a.py").write_text("import torch\nx = torch.cdist(1, 2).cuda()\ntorch.cuda.temperature('a')\n")
    before = tree(project)
    code, reports = analyze(project, "-q")
    assert code == 0
    assert before == tree(project)
    found = rows(reports, "unsupported_api")
    assert [(row["File"], row["Start Line"], row["OP"], row["Status"]) for row in found] == [
        ("a.py", "2", "torch.cdist", "unsupported"),
        ("a.py", "3", "torch.cuda.temperature", "absent"),
    ]
    assert (found[0]["Documents"], found[0]["Kernel"], found[0]["Certainty"]) == (
        "unsupported",
        "kernel",
        "certain",
    )
    summary = json.loads((reports / "summary.json").read_text())
    assert summary["options"]["mode"] == "torch_apis"
    assert summary["reports"]["unsupported_api.csv"] == 2


def test_deep_follows_names_into_other_files_and_runs_none(project: Path) -> None:
    _, reports = analyze(project, "-q")
    assert rows(reports, "unsupported_api") == []
    _, reports = analyze(project, "-q", "--deep", "--overwrite")
    found = rows(reports, "unsupported_api")
    assert [row["Start Line"] for row in found] == ["5", "7", "8", "11"]
    assert {row["OP"] for row in found} == {"torch.Tensor.mode"}


def test_several_modes_at_once(project: Path) -> None:
    code, reports = analyze(project, "-q", "-m", "torch_apis,affinity_apis", "-m", "dynamic_shape")
    assert code == 0
    options = json.loads((reports / "summary.json").read_text())["options"]
    assert options["mode"] == "torch_apis,affinity_apis,dynamic_shape"


def test_existing_reports_are_replaced_only_when_asked(project: Path) -> None:
    assert analyze(project, "-q")[0] == 0
    assert analyze(project, "-q")[0] == 2
    code, reports = analyze(project, "-q", "--overwrite")
    assert code == 0
    (reports / "summary.json").unlink()
    assert analyze(project, "-q", "--overwrite")[0] == 2  # no result of ours any more


def test_after_an_interrupt_the_reports_have_what_was_done(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "a.py").write_text("import torch\ntorch.cdist(1, 2)\n")
    real = project_analysis._record

    def stopping(result, *rest):
        real(result, *rest)
        if result.name == "a.py":
            raise KeyboardInterrupt

    monkeypatch.setattr(project_analysis, "_record", stopping)
    code, reports = analyze(project, "-m", "torch_apis,third_party", "--deep", "-q")
    assert code == 130
    assert "interrupted" in capsys.readouterr().err
    assert not (reports / "cuda_op.csv").exists()
    assert [row["OP"] for row in rows(reports, "unsupported_api")] == ["torch.cdist"]
    assert "use.py" in [row["File"] for row in rows(reports, "skipped_files")]
    assert json.loads((reports / "summary.json").read_text())["exit_code"] == 130


def test_an_interrupt_in_the_tree_leaves_the_tables_of_the_other_modes(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "a.py").write_text("import torch\ntorch.cdist(1, 2)\n")

    def stopping(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "Judge", stopping)
    code, reports = analyze(project, "-m", "torch_apis,third_party", "-q")
    assert code == 130
    assert "interrupted: tables without third_party" in capsys.readouterr().err
    assert [row["OP"] for row in rows(reports, "unsupported_api")] == ["torch.cdist"]
    summary = json.loads((reports / "summary.json").read_text())
    assert (summary["exit_code"], "cuda_op.csv" in summary["reports"]) == (130, False)
    assert summary["files"]["seen"] == len(list(project.rglob("*.py")))
    assert not (reports / "cuda_op.csv").exists()
    (project / "a.py").touch()
    code, reports = analyze(project, "-m", "third_party", "-q", "--overwrite")
    assert (code, "no report was written" in capsys.readouterr().err) == (130, True)


def test_modes_together_say_what_each_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(
        "import torch\ndef f():\n    torch.cuda.temperature('x')\n    torch.cdist(1, 2)\n"
    )
    (project / "broken.py").write_text("import torch\ntorch.cdist(\n")
    engines = []
    real = project_analysis.check_files
    counting = lambda *arguments, **more: engines.append(1) or real(*arguments, **more)  # noqa: E731
    monkeypatch.setattr(project_analysis, "check_files", counting)

    def made(modes: str) -> dict[str, str]:
        _, reports = analyze(project, "-m", modes, "-q", "--overwrite")
        return {file.name: file.read_text() for file in reports.glob("*.csv")}

    apart = made("torch_apis") | made("third_party")
    assert engines == [1, 1]
    assert made("torch_apis,third_party") == apart
    assert engines == [1, 1, 1]  # the rules ran once


def test_a_file_that_cannot_be_parsed_is_listed(project: Path) -> None:
    (project / "broken.py").write_text("import torch\ntorch.cdist(\n")
    code, reports = analyze(project, "-q")
    assert code == 1
    assert [row["File"] for row in rows(reports, "skipped_files")] == ["broken.py"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("-m", "affinity_apis", "--api-files", "x.csv"),
            "--api-files works only with -m affinity_apis,torch_apis",
        ),
        (("-m", "third_party", "--deep"), "--deep has no effect with -m third_party"),
        (("--env-path", "."), "--env-path needs --deep"),
        (("--deep", "--env-path", "no/such"), "--env-path: no/such: no such file or folder"),
        (("-m", ""), "choose from torch_apis, third_party"),
        (("-m", "everything"), "not 'everything'"),
        (("-q", "--verbose"), "cannot be used together"),
        (("--exclude", "*.py"), "has no Python files or notebooks that are not excluded"),
    ],
)
def test_wrong_use_is_one_line(
    project: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, reports = analyze(project, *options)
    assert code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not reports.exists()


def test_third_party_takes_the_rules_and_what_is_ignored(project: Path) -> None:
    (project / "pkg" / "ops.py").write_text(
        "import torch\ndef f():\n    torch.cuda.temperature('a')\ndef g(x):\n    return torch.hub.other(x)\n"
    )
    pack = project.parent / "pack.yaml"
    pack.write_text(
        "- {code: OWN001, name: other, summary: none, kind: name, match: torch.hub.other, severity: error,\n"
        "   status: absent, message: gone, advice: none, why: none}\n"
    )
    options = ("-m", "third_party", "--rules", str(pack), "--ignore", "NPU101", "-j", "1", "-q")
    code, reports = analyze(project, *options)
    assert code == 0
    found = rows(reports, "full_unsupported_results")
    assert [(row["API"], row["OP"]) for row in found] == [("pkg.ops.g", "torch.hub.other")]


def test_apis_are_judged_for_the_hardware(project: Path) -> None:
    write(project, {"a.py": "import torch\nlayer = torch.nn.Linear(2, 2)\n"})

    def apis(*options: str) -> list[str]:
        code, reports = analyze(project, "-q", "-v", "2.7.1", "--overwrite", *options)
        assert code == 0
        return [row["OP"] for row in rows(reports, "unsupported_api") if row["File"] == "a.py"]

    assert apis() == apis("--hw", "A2") == []
    assert apis("--hw", "950DT") == ["torch.nn.Linear"]
