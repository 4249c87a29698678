"""Files of settings that are none: pipes, devices, endless ones, and those nested or repeated without end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.files.errors import Unreadable
from migrator.files.source import read_settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no named pipes, no /dev/zero")
_INPUT = "-i train.py -o out -v 2.6"
_LINT = "lint --no-cache"
_DEEP = "[" * 50_000
_LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
_JOB = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\n"


def _run(folder: Path, arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "migrator", *arguments.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stderr + done.stdout


def _made(path: Path, what: str) -> Path:
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text(what, encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\nmodel.cuda()\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_pipes_and_devices_are_not_read(tmp_path: Path, what: str) -> None:
    with pytest.raises(Unreadable, match="it is a pipe or a device"):
        read_settings(_made(tmp_path / "file", what))


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_settings(tmp_path / "file", 5) == b"12345"
    with pytest.raises(Unreadable, match="it is larger than"):
        read_settings(tmp_path / "file", 4)
    with pytest.raises(Unreadable, match="it is a folder"):
        read_settings(tmp_path)


@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pyproject.toml", f"{_LINT} ."),
        ("file", f"{_LINT} --config file ."),
        ("file", f"{_LINT} --baseline file ."),
        ("file", f"{_LINT} --rules file ."),
        ("file", f"migrate {_INPUT} --rules file"),
        ("file", f"analyze -m torch_apis {_INPUT} --api-files file"),
        ("file", "launch rank-table check file"),
        ("file", "launch k8s --from file"),
    ],
)
def test_one_line_for_a_pipe_and_a_device(project: Path, name: str, arguments: str, what: str) -> None:
    _made(project / name, what)
    code, text = _run(project, arguments)
    assert code == 2, text
    assert len(text.strip().splitlines()) == 1, text
    assert name in text
    assert "it is a pipe or a device" in text


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_gitignore_that_is_no_file_ignores_nothing(project: Path, what: str) -> None:
    _made(project / ".gitignore", what)
    code, text = _run(project, f"{_LINT} .")
    assert code == 1
    assert "train.py" in text


_ENDLESS = '{"format": 1, "files": {"a.py": {"NPU100": {"": Infinity}}}}'


@pytest.mark.parametrize(
    ("content", "arguments", "reason"),
    [
        (_DEEP, f"{_LINT} --rules file .", "nested too deeply"),
        ("- " * 50_000, f"{_LINT} --rules file .", "nested too deeply"),
        (_LAUGHS, f"{_LINT} --rules file .", "too many values"),
        ("- &a [*a]", f"{_LINT} --rules file .", "a rule is a mapping"),
        (_DEEP, f"{_LINT} --baseline file .", "not a baseline"),
        (_ENDLESS, f"{_LINT} --baseline file .", "not a baseline"),
        ("select = " + _DEEP, f"{_LINT} --config file .", "nested too deeply"),
        (_DEEP, "launch rank-table check file", "nested too deeply"),
        (_JOB + _LAUGHS, "launch k8s --from file", "too many values"),
        (_DEEP, "launch k8s --from file", "not YAML"),
    ],
)
def test_one_line_for_what_is_nested_or_repeated_without_end(
    project: Path, content: str, arguments: str, reason: str
) -> None:
    (project / "file").write_text(content, encoding="utf-8")
    code, text = _run(project, arguments)
    assert code == 2, text[-300:]
    assert len(text.strip().splitlines()) == 1, text
    assert "file" in text
    assert reason in text
