"""``emulate --sandbox`` and ``verify --sandbox``: what a program can reach and write in bubblewrap."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from migrator.cli import emulate as command
from migrator.cli.main import run
from migrator.emulator.launch import boxed

PROGRAM = """\
import os, pathlib, socket
import torch, torch_npu

print(torch.ones(3, device="npu").sum().item(), [name for _, name in socket.if_nameindex()])
for place in (pathlib.Path("made.txt"), pathlib.Path(OUTSIDE, "made.txt")):
    try:
        place.write_text("made")
        print("made")
    except OSError:
        print("refused")
print(os.path.exists(os.path.join(OUTSIDE, "secret.txt")))
"""


def works() -> bool:
    asked = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-net", "true"]
    try:
        return subprocess.run(asked, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not works(), reason="needs bubblewrap, and a machine where it may start")
@pytest.mark.parametrize("how", ["emulate", "verify"])
def test_a_program_in_the_sandbox_writes_in_its_folder_only(emulate, tmp_path, monkeypatch, how) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (project / "train.py").write_text(f"OUTSIDE = {str(outside)!r}\n{PROGRAM}")
    report = tmp_path / "report"
    options = ("--report", str(report)) if how == "emulate" else (str(project),)
    options += ("--sandbox",)
    done = emulate("python", "train.py", options=options, how=how, cwd=project, cold=True)
    # What lies beside the project in the folder for temporary files is not there.
    assert done.stdout.splitlines() == ["3.0 ['lo']", "made", "refused", "False"], done.stderr
    assert (project / "made.txt").read_text() == "made"
    assert not (outside / "made.txt").exists()
    assert how == "verify" or list(report.glob("process-*.json"))


def test_only_some_folders_can_be_written(tmp_path, monkeypatch) -> None:
    home = tmp_path / "home"
    environment = {"NPUMIGRATE_EMULATOR": str(home / "cache"), "NPUMIGRATE_EMULATOR_TORCH": "/usr/lib/torch"}
    monkeypatch.setenv("HOME", str(home))
    assert boxed(["true"], environment, []) == ["true"]
    words = boxed(["/usr/bin/true"], {**environment, "NPUMIGRATE_EMULATOR_SANDBOX": "1"}, [home / "p", None])
    pairs = [*zip(words, words[1:], words[2:])]
    assert [pair[1] for pair in pairs if pair[0] == "--bind"] == [str((home / "p").resolve())]
    assert ("--tmpfs", str(home)) in [pair[:2] for pair in pairs]
    assert ("--ro-bind", str(home / "cache"), str(home / "cache")) in pairs
    assert words[-2:] == ["--", "/usr/bin/true"]


def test_without_bubblewrap_one_line_says_what_to_install(monkeypatch, capsys, tmp_path) -> None:
    def missing(*_arguments: object, **_options: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(command.subprocess, "run", missing)
    monkeypatch.chdir(Path(tmp_path))
    assert run(["emulate", "--sandbox", "--", "true"]) == 126
    assert capsys.readouterr().err == "npumigrate: --sandbox needs bubblewrap: apt-get install bubblewrap\n"
