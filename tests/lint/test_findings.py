"""What is found, where, and how it is told."""

from __future__ import annotations

import json
import os
import stat
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from migrator.api_support import verdict_type
from migrator.api_support.versions import newest
from migrator.cli.main import run
from migrator.core.examples import project_of
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.finding import SEVERITIES
from migrator.lint.fixing import with_fixes
from migrator.lint.options import KEYS
from migrator.report.formats import FORMATS
from migrator.report.formats.text import wrapped
from tests.checking import check_text, document, every_rule, load_pack, migrate_text
from tests.reading import write

ROOT = Path(__file__).parents[2]
BEFORE = [
    pytest.param(
        example["before"],
        example["after"],
        example.get("version", "2.6"),
        rule.opt_in,
        example.get("file", "example.py"),
        {key: example.get(key, "") for key in ("program", "requirements")},
        id=f"{rule.code}-{place}",
    )
    for rule in every_rule()
    for place, example in enumerate(rule.examples)
    if "before" in example
]


OPT_IN = tuple(rule.code for rule in every_rule() if rule.opt_in)


@cache
def engine(version: str, opt_in: bool = False) -> Rules:
    return Rules(Settings(version=version, select=OPT_IN if opt_in else ("ALL",)), load_pack)


@pytest.mark.parametrize(("before", "after", "version", "opt_in", "name", "beside"), BEFORE)
def test_lint_finds_what_a_migration_changes_and_reports(
    before: str, after: str, version: str, opt_in: bool, name: str, beside: dict[str, str]
) -> None:
    project = project_of(document(name, before), **beside)
    migrated = migrate_text(engine(version, opt_in), name, before, project)
    checked = check_text(engine(version, opt_in), name, before, project)
    assert migrated.text is not None
    assert [(item.code, item.line, item.column, item.message) for item in checked.findings] == [
        (item.code, item.line, item.column, item.message) for item in migrated.findings
    ]
    assert checked.text is None


@pytest.mark.parametrize(("before", "after", "version", "opt_in", "name", "beside"), BEFORE)
def test_the_fixes_of_the_findings_add_up_to_the_migration(
    before: str, after: str, version: str, opt_in: bool, name: str, beside: dict[str, str]
) -> None:
    text = before
    for _ in range(8):
        project = project_of(document(name, text), **beside)
        found = check_text(engine(version, opt_in), name, text, project).findings
        text, made = with_fixes(text, found)
        if not made:
            break
    assert text == after


def test_exit_codes_and_places(lint, train) -> None:
    answer = lint("train.py", "--output-format", "json")
    assert answer.code == 1
    assert answer.places() == [("NPU901", 1, 1), ("NPU111", 3, 5), ("NPU101", 4, 1)]
    third = answer.json()[2]
    assert third["end_location"] == {"row": 4, "column": 23}
    assert third["filename"] == str(train)
    assert third["noqa_row"] == 4
    assert third["fix"]["applicability"] == "safe"
    assert [edit["content"] for edit in third["fix"]["edits"]] == ["import torch_npu\n", "npu"]
    train.write_text("import torch\n")
    assert lint("train.py").out == "All checks passed!\n"


def test_columns_count_characters(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text("import torch\nword = 'é漢😀'; torch.cuda.init()\n", encoding="utf-8")
    assert lint("a.py", "--output-format=json", "--select=NPU101").places() == [("NPU101", 2, 15)]


def test_by_default_each_advice_is_printed_once_below_all_locations(lint, tmp_path) -> None:
    cudnn = "torch.backends.cudnn.benchmark = True\n"
    (tmp_path / "a.py").write_text(f"import torch\n{cudnn}{cudnn}torch.cuda.synchronize()\n")
    (tmp_path / "b.py").write_text(f"import torch\n{cudnn}torch.backends.cudnn.deterministic = True\n")
    answer = lint("--select", "NPU101,NPU513")
    full = lint("--select", "NPU101,NPU513", "--output-format", "full")
    assert answer.code == full.code == 1
    lines = answer.out.splitlines()
    assert lines[:7] == [
        "NPU101 [*] error: use torch.npu.synchronize instead of torch.cuda.synchronize",
        "  a.py:4:1",
        "",
        "NPU513 info: torch.backends.cudnn.benchmark has no effect on NPUs",
        "  a.py:2:1, 3:1",
        "  b.py:2:1",
        "NPU513 info: torch.backends.cudnn.deterministic has no effect on NPUs",
    ]
    assert lines[7:9] == [
        "  b.py:3:1",
        next(line for line in full.out.splitlines() if line.startswith("help:")),
    ]
    assert sum(line.startswith("help:") for line in lines) == 1
    assert lines[-2:] == full.out.splitlines()[-2:]


def test_upgrade_is_lint_with_the_rules_for_code_on_npus(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text("import torch\nimport torch_npu\ng = torch.npu.NPUGraph()\nx.cuda()\n")
    asked = ["-v", "1.11", "--output-format", "json", "--no-cache"]
    code = run(["upgrade", *asked, str(tmp_path)])
    answer = lint(*asked, "--select", "NPU10,NPU53", str(tmp_path), version="")
    assert code == answer.code == 1
    assert {item["code"] for item in answer.json()} == {"NPU1001"}


def test_of_a_whole_folder_it_is_known_that_no_file_reads_a_rank(lint, tmp_path) -> None:
    parser = "import argparse\nP = argparse.ArgumentParser()\n"
    parser += 'P.add_argument("--local_rank", type=int, default=0)\n'
    write(
        tmp_path,
        {"train.py": parser, "read/train.py": parser, "read/use.py": "def f(a):\n    return a.local_rank\n"},
    )
    only = ("--isolated", "--select", "NPU210", "--output-format", "json")
    assert lint(*only, str(tmp_path / "train.py")).places() == [("NPU210", 3, 1)]
    assert lint(*only, str(tmp_path / "read")).places() == [("NPU210", 3, 1)]
    (tmp_path / "read/use.py").unlink()
    assert lint(*only, str(tmp_path / "read")).places() == []


def test_full_format_shows_the_source(lint, train) -> None:
    lines = lint("train.py", "--select", "NPU101", "--output-format=full").out.splitlines()
    assert lines == [
        "NPU101 [*] error: use torch.npu.synchronize instead of torch.cuda.synchronize",
        " --> train.py:4:1",
        "  |",
        "4 | torch.cuda.synchronize()",
        "  | ^^^^^^^^^^^^^^^^^^^^^^",
        "  |",
        "fix: Replace `torch.cuda.synchronize` with `torch.npu.synchronize`",
        "",
        "Found 1 finding.",
        "[*] 1 fixable with the `--fix` option.",
    ]


def test_on_a_terminal_words_are_wrapped_and_names_stay_whole() -> None:
    text = "\x1b[1;31mNPU501\x1b[0m error: torch.cuda.memory.caching_allocator_alloc is absent on NPUs"
    assert wrapped(text, 50) == (
        "\x1b[1;31mNPU501\x1b[0m error:\n  torch.cuda.memory.caching_allocator_alloc is\n  absent on NPUs\n"
    )
    assert wrapped(text, 0) == f"{text}\n"


def test_a_version_that_nobody_named_is_told(lint, train) -> None:
    line = f"Target: torch {newest().text} (the newest known version). Override with -v"
    assert lint(version="").out.splitlines()[-1] == line
    assert "For torch" not in lint().out


def test_the_version_is_that_of_the_requirements(lint, train, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\ntorch==2.1.0\n")
    line = "Target: torch 2.1.0 (requirements.txt:2 has torch==2.1.0). Override with -v"
    assert lint(version="").out.splitlines()[-1] == line
    assert lint("train.py", version="").out.splitlines()[-1] == line
    assert lint("-", version="", stdin="x = 1\n").out.splitlines()[-1] == line
    assert 'version = "2.1.0"' in lint("--show-settings", version="").out
    (tmp_path / "npumigrate.toml").write_text("severity = 'info'\n")
    assert lint(version="").out.splitlines()[-1] == line
    (tmp_path / "npumigrate.toml").write_text("version = '2.6'\n")
    line = "Target: torch 2.6.0 (configured). Override with -v"
    assert lint(version="").out.splitlines()[-1] == line


def test_the_requirements_are_those_around_the_path_that_is_named(lint, tmp_path: Path) -> None:
    files = {"requirements.txt": "torch==2.1.0\n", "project/requirements.txt": "torch==2.4.0\n"}
    write(tmp_path, {**files, "project/package/net.py": "x.cuda()\n"})
    assert "Target: torch 2.4.0" in lint("project", version="").out
    assert (
        "Target: torch 2.1.0" in lint("project/package", version="").out
    )  # no repository: the current folder's
    (tmp_path / "project" / ".git").mkdir()
    assert "Target: torch 2.4.0" in lint("project/package/net.py", version="").out
    write(tmp_path, {"project/package/npumigrate.toml": "version = '2.6'\n"})
    assert "Targets: torch 2.4.0, 2.6.0. Override with -v" in lint("project", version="").out
    assert "Target: torch 2.6.0 (configured)" in lint("project/package", version="").out


def test_check_is_another_name_of_lint(lint, train, capsysbinary) -> None:
    said = lint("train.py").out
    assert run(["check", "-v", "2.6", "train.py"]) == 1
    assert capsysbinary.readouterr().out.decode() == said


def test_colour_only_where_it_is_wanted(lint, train, monkeypatch) -> None:
    assert "\x1b[" not in lint("train.py").out
    assert "\x1b[1;31m" in lint("train.py", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in lint("train.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in lint("train.py").out
    assert lint("train.py", "--color", "sometimes").code == 2


def test_concise_grouped_and_json_lines(lint, train) -> None:
    assert "train.py:4:1: NPU101 [*] error: use torch.npu.synchronize" in lint("--output-format=concise").out
    assert "train.py:\n  1:1  NPU901" in lint("--output-format=grouped").out
    lines = lint("--output-format=json-lines").out.splitlines()
    assert [json.loads(line)["code"] for line in lines] == ["NPU901", "NPU111", "NPU101"]


def test_an_output_that_is_no_plain_file_is_written_to_and_never_replaced(lint, train, tmp_path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert lint("train.py", "--output-format=concise", "-o", "pipe").code == 1
        assert b"NPU101" in os.read(reader, 65536)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert sorted(os.listdir(tmp_path)) == [".npumigrate_cache", "pipe", "train.py"]
    assert lint("train.py", "-o", tmp_path).code == 2


def test_selection(lint, train) -> None:
    def codes(*arguments: str) -> list[str]:
        return [place[0] for place in lint("--output-format=json", *arguments).places()]

    assert codes("--select", "NPU101,NPU9") == ["NPU901", "NPU101"]
    assert codes("--select", "NPU1", "--ignore", "NPU101") == ["NPU111"]
    assert codes("--select", "NPU9", "--extend-select", "NPU101") == ["NPU901", "NPU101"]
    assert codes("--per-file-ignores", "tr*.py:NPU1,NPU901") == []
    assert codes("--per-file-ignores", "!tr*.py:NPU1") == ["NPU901", "NPU111", "NPU101"]
    assert codes("--per-file-ignores", "tr*.py:ALL") == []
    assert codes("--per-file-ignores", "tr*.py:NPU8") == ["NPU901", "NPU111", "NPU101"]


HARDWARE = """\
import torch
from torch import nn

def build(x: nn.Linear, y: torch.Tensor):
    layer = nn.Linear(2, 2)
    wide = torch.concat([x], dtype=torch.complex64)
    first = torch.concat(y.to(torch.complex64))
    return layer, [1, 2].sort(), y.sort()
"""


def test_hardware(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(HARDWARE)

    def found(*arguments: str) -> list[tuple[str, str, int]]:
        answer = lint("--output-format=json", *arguments, version="2.7.1")
        return [(i["code"], i["severity"], i["location"]["row"]) for i in answer.json()]

    assert found() == found("--hw=A3") == []
    assert found("--hw=950DT") == [
        ("NPU501", "info", 5),
        ("NPU503", "warning", 6),
        ("NPU503", "warning", 7),
        ("NPU503", "info", 8),
    ]
    out = lint("--hw=950DT", "--output-format=concise", version="2.7.1").out
    assert "the documents list torch.nn.Linear for A2 and A3, not for 950DT" in out
    assert "the documents exclude complex64 for 950DT" in out
    assert "differs on 950DT" in out
    (tmp_path / "npumigrate.toml").write_text('hw = "950DT"\n[[overrides]]\npaths = ["a.py"]\nhw = "A2"\n')
    assert found() == []
    assert len(found("--hw=950DT")) == 4


LOADER = "import torch\nloader = torch.utils.data.DataLoader(d)\ntorch.cuda.init()\n"


def test_rules_that_are_off_are_used_where_they_are_named(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(LOADER)

    def codes(*arguments: str) -> set[str]:
        return {place[0] for place in lint("--output-format=json", *arguments).places()}

    assert codes() == codes("--select=ALL") == {"NPU101", "NPU901"}
    assert codes("--select=NPU7") == {"NPU701"}
    assert codes("--extend-select=NPU7") == {"NPU101", "NPU701", "NPU901"}
    assert codes("--extend-select=NPU7", "--ignore=NPU70") == {"NPU101", "NPU901"}
    assert codes("--select=NPU7", "--per-file-ignores=a.py:NPU7") == set()
    (tmp_path / "npumigrate.toml").write_text('extend-select = ["NPU701"]\n')
    assert codes() == {"NPU101", "NPU701", "NPU901"}


def test_wrong_use_is_told_even_where_there_is_nothing_to_lint(lint, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, version in ((["empty"], "99"), (["--select=NPU0", "empty"], "2.6")):
        answer = lint(*arguments, version=version)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert lint("empty").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select=,"], "--select: no such rule"),
        (["--select="], "--select is empty"),
        (["--fix", ""], "a path is empty"),
        (["--write-baseline", ""], "--write-baseline is empty"),
        (["--stdin-filename", ""], "--stdin-filename is empty"),
        (["--statistics", "--output-format=sarif"], "--statistics supports text and json, not sarif"),
        (["--fix", "--add-noqa"], "--add-noqa and --fix cannot be used together"),
        (["--diff", "--write-baseline=b.json"], "--write-baseline and --diff cannot be used together"),
        (["--per-file-ignores=tests/*"], "must be GLOB:RULES"),
        (["--output-format=xml"], "full | concise | grouped | json"),
        (["--hw", "910"], "--hw is '910' and must be A1 | A2 | A3 | 950DT"),
        (["--select", "NPU1O1"], "unknown rule 'NPU1O1'; did you mean NPU611, NPU511, NPU411?"),
        (["--select=NPU8O1"], "unknown rule 'NPU8O1'; did you mean NPU8"),
        (["--select=all"], "unknown rule 'all'; did you mean ALL?"),
    ],
)
def test_options_that_make_no_sense(lint, train, arguments: list[str], words: str) -> None:
    answer = lint(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert words in answer.err


def test_nothing_is_said_to_have_passed_that_was_not_looked_at(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_bytes(b"torch.cuda = '\xff'\n")
    assert (lint().code, lint().out) == (2, "")
    assert lint("--statistics").out == ""


@pytest.mark.parametrize("columns", ["wide", "", "-1", "7"])
def test_help_is_given_on_a_terminal_of_any_width(lint, monkeypatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    answer = lint("--help", version="")
    assert answer.code == 0
    assert "--output-format" in answer.out


def test_the_help_names_every_format(lint) -> None:
    text = " ".join(lint("--help").out.split()).replace("json- lines", "json-lines")
    assert [name for name in FORMATS if f"{name}," not in text and f", {name}" not in text] == ["short"]


def test_the_table_of_options_names_the_values_that_the_code_knows() -> None:
    levels = SEVERITIES[::-1]
    known = {"hw": verdict_type.HARDWARE, "severity": levels, "fail-on": levels}
    known["output-format"] = tuple(FORMATS)
    assert {name: tuple(KEYS[name].choices) for name in known} == known


def test_severity_and_fail_on(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert lint("a.py").code == 1
    assert lint("a.py", "--fail-on", "warning").code == 0
    assert "NPU513" in lint("a.py", "--fail-on", "warning").out
    assert lint("a.py", "--severity", "warning").out == "All checks passed!\n"
    assert lint("a.py", "--exit-zero").code == 0


def test_statistics(lint, train) -> None:
    (train.parent / "more.py").write_text("import torch\ntorch.cuda.init()\n")
    assert lint("--statistics").out.splitlines()[0] == "2  NPU101  [*]  cuda-module"
    counted = lint("--statistics", "--output-format=json").json()
    expected = {"code": "NPU101", "name": "cuda-module", "count": 2, "fixable": True, "fixable_count": 2}
    assert counted[0] == expected


def test_trouble_with_one_file_leaves_the_rest(lint, train, tmp_path) -> None:
    write(tmp_path, {"broken.py": "torch.cuda.init(\n", "bytes.py": b"torch.cuda = '\xff'\n"})
    answer = lint("--output-format=concise", ".", "absent.py")
    assert answer.code == 2
    assert "broken.py:1:1: NPU999 error: not valid Python" in answer.out
    assert "train.py:4:1: NPU101" in answer.out
    assert len(answer.err.splitlines()) == 2
    assert "absent.py: no such file or folder" in answer.err
    assert "bytes.py: byte 0xff at line 1 is not UTF-8" in answer.err


def test_folders_that_may_not_be_entered_are_told(lint, train, tmp_path, monkeypatch) -> None:
    (tmp_path / "secret").mkdir()
    status, scandir = os.stat, os.scandir

    def refuse(path: Any) -> None:
        if "secret" in os.fspath(path).split(os.sep)[:-1]:
            raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", lambda path, **given: refuse(path) or status(path, **given))
    monkeypatch.setattr(os, "scandir", lambda path: refuse(f"{path}/") or scandir(path))
    answer = lint("--output-format=json", ".", "secret/a.py")
    assert (answer.code, len(answer.json())) == (2, 3)
    assert answer.err.splitlines() == [
        "npumigrate: secret: cannot be read: permission denied",
        "npumigrate: secret/a.py: cannot be read: permission denied",
    ]


def test_stdin(lint, tmp_path) -> None:
    (tmp_path / "npumigrate.toml").write_text('per-file-ignores = {"sub/*" = ["NPU1"]}\n')
    text = "import torch\ntorch.cuda.init()\n"
    assert lint("-", "--stdin-filename", "sub/a.py", "--output-format=json", stdin=text).places() == []
    answer = lint("-", "--fix", "--select=NPU101", stdin=text)
    assert answer.out == "import torch\nimport torch_npu\ntorch.npu.init()\n"
    assert "1 fixed" in answer.err or "2 fixed" in answer.err
    answer = lint("-", "--add-noqa", stdin=text)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_stdin_under_an_excluded_name(lint, tmp_path) -> None:
    text = "import torch\ntorch.cuda.init()\n"
    for _ in ("before the first save", "and after it"):
        named = ("--stdin-filename=build/a.py", "--select=NPU101")
        assert lint(*named, stdin=text).code == 1
        assert lint(*named, "--force-exclude", stdin=text).code == 0
        assert lint(*named, "--force-exclude", "--fix", stdin=text).out == text
        write(tmp_path, {"build/a.py": text})


def test_a_name_for_stdin_means_stdin(lint, train) -> None:
    named = ("--stdin-filename", "a.py", "--select=NPU101", "--output-format=concise")
    assert lint(*named, stdin="torch.cuda.init()\n").code == 0  # no torch is imported
    assert lint(*named, stdin="import torch\ntorch.cuda.init()\n").out.startswith("a.py:2:1: NPU101 ")
    answer = lint(*named, train, stdin="")
    assert (answer.code, answer.out) == (2, "")
    assert "give - as the only path" in answer.err


def test_texts_that_name_devices_are_told_in_words(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\nx = torch.zeros(1, device='cuda')\nparser.add_argument('--device', default='cuda')\n"
    )
    messages = [item["message"] for item in lint("--select=NPU12", "--output-format=json").json()]
    assert messages == [
        "'cuda' is a CUDA device (zeros(device=…))",
        "'cuda' looks like a CUDA device (option named like a device (--device))",
    ]


def test_modules_that_are_called_for_break_nothing(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\nvalues = torch.igamma(x, y)\n"
        "__import__('os').environ['CUBLAS_WORKSPACE_CONFIG'] = ':4'\n"
    )
    answer = lint("--select=NPU502,NPU403", "--output-format=json")
    assert (answer.err, [code for code, _, _ in answer.places()]) == ("", ["NPU502", "NPU403"])


def test_what_neither_stops_nor_moves_a_program_is_asked_for(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\npool = torch.nn.MaxPool2d(2)\ninverse = lambda x: torch.linalg.inv(x)\n"
    )

    def found(*arguments: str) -> list[tuple[str, str, int]]:
        answer = lint("--output-format=json", *arguments, version="2.6")
        return [(i["code"], i["severity"], i["location"]["row"]) for i in answer.json()]

    assert found() == [("NPU502", "warning", 3)]
    assert found("--extend-select=NPU540") == [("NPU540", "info", 2), ("NPU502", "warning", 3)]


def test_lines_that_come_are_told_apart(lint, tmp_path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.1.0  # why\nflash-attn\n")
    answer = lint("-v", "2.6", "--output-format=full", "requirements.txt")
    assert "unsafe fix: Rewrite as `torch==2.6.0 # why ⏎ torch_npu==2.6.0.post5`\n" in answer.out


def test_a_hook_knows_the_packages_beside_its_file(lint, tmp_path) -> None:
    (tmp_path / "apex").mkdir()
    (tmp_path / "apex" / "__init__.py").write_text("x = 1\n")
    for name in ("train.py", "tools/train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import torch\nfrom apex import x\n")
        assert lint(name, "--isolated", "--output-format", "json").places() == []
    (tmp_path / "apex" / "__init__.py").unlink()
    assert lint("train.py", "--isolated", "--output-format", "json").places() == [("NPU601", 2, 1)]
