"""Fixes in place."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from migrator.lint import fixing, run
from tests.lint.conftest import TRAIN
from tests.reading import write

FIXED = TRAIN.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu")
LIKELY = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--device', default='cuda')\n"
)


def test_fix(lint, train) -> None:
    answer = lint("--fix")
    assert (answer.code, answer.out) == (0, "Found 3 findings (3 fixed, 0 remaining).\n")
    assert train.read_text() == FIXED
    assert lint("--fix").out == "All checks passed!\n"


def test_diff_writes_nothing(lint, train) -> None:
    answer = lint("--diff")
    assert answer.code == 1
    assert "+torch.npu.synchronize()\n" in answer.out
    assert train.read_text() == TRAIN
    train.write_text(FIXED)
    assert (lint("--diff").code, lint("--diff").out) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        (["--unfixable=NPU11"], ""),
        (["--fixable=NPU101,NPU9"], ""),
        ([], 'unfixable = ["ALL"]\nfixable = ["NPU10", "NPU901"]\n'),
    ],
)
def test_rules_that_are_not_to_be_fixed(lint, train, tmp_path, arguments: list[str], config: str) -> None:
    (tmp_path / "npumigrate.toml").write_text(config)
    found = lint("--output-format=json", *arguments).json()
    assert [item["fix"] is None for item in found] == [False, True, False]
    answer = lint("--fix", "--output-format=concise", *arguments)
    assert answer.code == 1
    assert answer.out.splitlines() == [
        "train.py:4:5: NPU111 error: use .npu() instead of .cuda()",
        "Found 3 findings (2 fixed, 1 remaining).",
        "Next: npumigrate rule NPU111",
    ]
    assert train.read_text() == FIXED.replace(".npu()", ".cuda()")
    train.write_text("x = 1  # noqa: NPU101\n")
    assert lint("--fix", "--unfixable=NPU990").code == 1
    assert train.read_text() == "x = 1  # noqa: NPU101\n"
    assert "unknown rule 'NPU777'" in lint("--unfixable=NPU777").err


def test_the_diff_goes_where_the_output_goes(lint, train, tmp_path) -> None:
    wanted = lint("--diff").out
    answer = lint("--diff", "-o", "fixes.diff")
    assert (answer.code, answer.out) == (1, "")
    assert (tmp_path / "fixes.diff").read_text() == wanted


@pytest.mark.parametrize("key", ["fix", "fix-only"])
def test_a_configured_fix_yields_to_the_command_line(lint, train, tmp_path, key: str) -> None:
    (tmp_path / "npumigrate.toml").write_text(f"{key} = true\n")
    assert lint("--no-fix").code == 1
    assert lint("--write-baseline=known.json").code == 0
    assert train.read_text() == TRAIN
    assert lint("--add-noqa").out == "Added 3 noqa comments.\n"
    assert ".cuda()  # noqa: NPU111\n" in train.read_text()
    train.write_text(TRAIN)
    assert lint("--no-fix", f"--{key}").code == 0
    assert ".cuda" not in train.read_text()


def test_unsafe_fixes_only_where_they_are_asked_for(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_text(LIKELY)
    answer = lint("--fix")
    assert answer.code == 1
    assert file.read_text() == LIKELY
    assert "No fixes available (1 hidden fix can be enabled with the `--unsafe-fixes` option)." in answer.out
    assert lint("--fix", "--unsafe-fixes").code == 0
    assert "default='npu'" in file.read_text()


def test_an_import_that_only_unsafe_fixes_need_is_unsafe(lint, tmp_path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\n" + LIKELY)
    safety = {item["code"]: item["fix"]["applicability"] for item in lint("--output-format=json").json()}
    assert safety == {"NPU901": "unsafe", "NPU122": "unsafe"}


def test_fix_only_show_fixes_and_exit_codes(lint, train, tmp_path) -> None:
    (tmp_path / "a.py").write_text(LIKELY)
    answer = lint("--fix-only", "--show-fixes")
    assert answer.code == 0
    assert "- train.py:\n      1 × NPU101 (cuda-module)\n" in answer.out
    assert "NPU122" not in answer.out
    assert "remaining" not in answer.out  # nobody counted them
    assert lint("--fix-only").out == "Nothing to fix.\n"
    train.write_text(TRAIN)
    assert lint("--fix-only", "--exit-non-zero-on-fix").code == 1
    train.write_text(TRAIN)
    assert lint("--fix-only").out == "Fixed 3 findings.\n"
    train.write_text(TRAIN)
    assert lint("--fix", "train.py", "--exit-non-zero-on-fix").code == 1


def test_only_what_is_selected_is_fixed(lint, train) -> None:
    lint("--fix", "--select=NPU101")
    assert train.read_text() == TRAIN.replace("torch.cuda", "torch.npu").replace(
        "import torch\n", "import torch\nimport torch_npu\n"
    )


def test_mode_links_encoding_and_newlines_stay(lint, tmp_path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    file = folder / "real.py"
    file.write_bytes("# coding: latin-1\r\nimport torch\r\ntorch.cuda.init()  # é\r\n".encode("latin-1"))
    file.chmod(0o750)
    (tmp_path / "link.py").symlink_to(file)
    lint("--fix", "link.py")
    assert (tmp_path / "link.py").is_symlink()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o750
    assert file.read_bytes() == (
        "# coding: latin-1\r\nimport torch\r\nimport torch_npu\r\ntorch.npu.init()  # é\r\n".encode("latin-1")
    )
    assert sorted(os.listdir(folder)) == ["real.py"]


@pytest.mark.parametrize("way", ["fix = true", "--fix", "--add-noqa", "named"])
def test_nothing_is_written_through_a_link_out_of_the_project(lint, tmp_path, monkeypatch, way) -> None:
    outside, project = tmp_path / "outside.py", tmp_path / "project"
    settings = "[tool.npumigrate]\n" + way * (" " in way) + "\n"
    write(project, {"pyproject.toml": settings, "real.py": TRAIN, "sub/a.txt": "", "../outside.py": TRAIN})
    monkeypatch.chdir(project)
    (project / "link.py").symlink_to(outside)
    (project / "sub" / "inner.py").symlink_to("../real.py")
    answer = lint(*{"named": ["--fix", "link.py", "real.py"]}.get(way, ["."] if " " in way else [way, "."]))
    assert outside.read_text() == TRAIN
    assert (project / "link.py").is_symlink()
    assert (project / "real.py").read_text() != TRAIN
    assert answer.code == 2
    assert [line for line in answer.err.splitlines() if "link.py" in line] == [
        f"npumigrate: {project / 'link.py'} is a symbolic link to {outside}: name that file"
    ]


def test_of_a_named_folder_no_link_leads_out(lint, tmp_path) -> None:
    write(tmp_path, {"project/a.txt": "", "outside.py": TRAIN})
    (tmp_path / "project" / "link.py").symlink_to(tmp_path / "outside.py")
    assert lint("--fix", "project").code == 2
    assert (tmp_path / "outside.py").read_text() == TRAIN


def test_a_failed_write_leaves_the_file(lint, train, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    answer = lint("--fix")
    assert answer.code == 2
    assert "no space left on device" in answer.err
    assert train.read_text() == TRAIN
    assert [name for name in os.listdir(train.parent) if name.startswith(".npumigrate-")] == []


def test_what_cannot_be_written_is_told_and_the_rest_is_fixed(lint, train, tmp_path, monkeypatch) -> None:
    write(tmp_path, {"a.py": TRAIN, "z.py": TRAIN})
    replace = os.replace

    def refuse(source: str, target: Path) -> None:
        if target.name == "train.py":
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    answer = lint("--fix", "--show-fixes")
    assert answer.code == 2
    assert answer.err == f"npumigrate: cannot write {train}: permission denied\n"
    assert "- a.py:" in answer.out
    assert "Found 9 findings (6 fixed, 3 remaining)." in answer.out
    for name in ("a.py", "z.py"):
        assert ".cuda" not in (tmp_path / name).read_text()
    assert train.read_text() == TRAIN


def test_a_file_that_changes_meanwhile_is_left_alone(lint, train, monkeypatch) -> None:
    fix_document = fixing.fix_document

    def slowly(*arguments: Any) -> fixing.Fixed:
        train.write_text("typed_meanwhile = 1\n")
        return fix_document(*arguments)

    monkeypatch.setattr(fixing, "fix_document", slowly)
    answer = lint("--fix")
    trouble = "npumigrate: train.py: not changed: changed in the meantime\n"
    assert (answer.code, answer.err) == (2, trouble)
    assert train.read_text() == "typed_meanwhile = 1\n"


@pytest.mark.parametrize("option", ["--fix", "--add-noqa"])
def test_a_file_that_goes_away_is_told_and_the_rest_is_changed(
    lint, train, tmp_path, monkeypatch, option
) -> None:
    (tmp_path / "a.py").write_text(TRAIN)
    check = run.check_files

    def check_slowly(*arguments: Any) -> Any:
        found = check(*arguments)
        (tmp_path / "a.py").unlink()
        return found

    monkeypatch.setattr(run, "check_files", check_slowly)
    answer = lint(option)
    assert answer.code == 2
    assert answer.err == "npumigrate: a.py: not changed: no such file or folder\n"
    assert train.read_text() != TRAIN


@pytest.mark.parametrize("text", ["torch.cuda.get_autocast_gpu_dtype", "torch.get_autocast_gpu_dtype"])
def test_a_fix_that_needs_another_one(lint, tmp_path, text: str) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\nd = torch.get_autocast_gpu_dtype()\n")
    lint("--fix", "--unsafe-fixes")
    assert 'd = torch.get_autocast_dtype("npu")' in file.read_text()
