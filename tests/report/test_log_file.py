"""Which commit of the user's project a run noted: read from Git's own files."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pytest

from migrator.files.patterns import commit_of
from migrator.report.log_file import last_run, log_to

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *named, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_is_the_one_that_git_names(tmp_path: Path) -> None:
    """On a branch, with packed references, in another work tree, and where no branch is checked out."""
    root = tmp_path / "project"
    (root / "models").mkdir(parents=True)
    _git(root, "init", "-q")
    assert commit_of(root) == ""  # no commit yet
    _git(root, "commit", "-q", "--allow-empty", "-m", "first")
    first = _git(root, "rev-parse", "HEAD")
    assert commit_of(root / "models") == first
    _git(root, "pack-refs", "--all")
    assert commit_of(root) == first
    _git(root, "worktree", "add", "-q", "-b", "other", "../other")
    _git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(tmp_path / "other") == _git(tmp_path / "other", "rev-parse", "HEAD") != first
    _git(root, "checkout", "-q", "--detach")
    assert commit_of(root) == first


@pytest.mark.parametrize("head", ["ref: ../../../etc/passwd", "ref: ", "no commit", COMMIT[:9], "\0", ""])
def test_what_is_no_commit_is_left_out(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit_of(tmp_path) == ""


@pytest.mark.skipif(os.name == "nt", reason="no pipes there")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert commit_of(tmp_path) == ""


def test_the_last_run_has_the_commit_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with log_to(tmp_path), caplog.at_level(logging.INFO, "npumigrate"):
        for commit in (COMMIT, ""):
            logging.getLogger("npumigrate").info("command npumigrate -i %s", commit or "elsewhere")
            if commit:
                logging.getLogger("npumigrate").info("commit %s", commit)
                assert last_run(tmp_path)[1:] == (f"npumigrate -i {COMMIT}", COMMIT)
    assert last_run(tmp_path)[1:] == ("npumigrate -i elsewhere", "")
