"""The list of a fleet, and how what it names is fetched."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from migrator.cli import main
from migrator.files.errors import SourceError
from migrator.fleet.repositories import NotObtainedError, Repository, obtain, read_list, run


def listed(folder: Path, *lines: str) -> list[Repository]:
    file = folder / "repos.txt"
    file.write_text("\n".join(lines))
    return read_list(file)


def test_each_kind(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two.tar.gz").write_bytes(b"")
    commit = "0123456789" * 4
    lines = (
        "# all",
        "one",
        "two.tar.gz  # archive",
        "pypi:timm==1.0.3",
        "pypi:timm",
        "",
        f"git+https://a.b/c/d.git@{commit}",
    )
    found = listed(tmp_path, *lines, "git@host:team/e.git", "https://a.b/f@v1.0")
    assert [(item.name, item.kind, item.revision, item.fixed) for item in found] == [
        ("one", "folder", "", False),
        ("two", "archive", "", False),
        ("timm-1.0.3", "package", "", True),
        ("timm", "package", "", False),
        ("d-012345678901", "git", commit, True),
        ("e", "git", "", False),
        ("f-v1.0", "git", "v1.0", False),
    ]


def test_names_are_not_shared(tmp_path: Path) -> None:
    for folder in ("a/x", "b/x", "c/X"):
        (tmp_path / folder).mkdir(parents=True)
    assert [item.name for item in listed(tmp_path, "a/x", "b/x", "c/X")] == ["x", "x-2", "X-3"]


@pytest.mark.parametrize(
    "line",
    ["no/such/folder", "timm", "timm==1.0.3", "pypi:../x", "git+https://a.b/c@--upload-pack=x", "file.txt"],
)
def test_what_is_no_repository_is_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "file.txt").touch()
    if line == "file.txt":
        line = "./file.txt"
    with pytest.raises(SourceError, match=r"repos\.txt, line 2: "):
        listed(tmp_path, "pypi:timm", line)


def test_all_wrong_lines_are_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        listed(tmp_path, "no/1", "pypi:timm", *(f"no/{number}" for number in range(3, 14)))
    told = str(caught.value).splitlines()
    assert [line.split(": ")[0].rsplit(" ", 1)[-1] for line in told[:2]] == ["1", "3"]
    assert (len(told), told[-1]) == (11, "(+2)")


def test_an_archive_puts_nothing_outside(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for name in ("../out.py", "/abs.py", "p/in.py"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            tar.addfile(entry, io.BytesIO(b"1"))
        link = tarfile.TarInfo("p/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as zipped:
        zipped.writestr("../out.py", "1")
        zipped.writestr("p/in.py", "1")
    for name in ("bad.tar", "bad.zip"):
        scratch = tmp_path / f"scratch-{name}"
        scratch.mkdir()
        folder = obtain(listed(tmp_path, name)[0], scratch, "", 60)
        assert [path.name for path in folder.rglob("*")] == ["in.py"]
        assert [path.name for path in scratch.rglob("*.py")] == ["in.py"]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_revision_without_what_the_repository_configures(tmp_path: Path) -> None:
    work, ran = tmp_path / "work", tmp_path / "ran"

    def git(*arguments: str) -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *names, *arguments], cwd=work, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    work.mkdir()
    git("init", "-q")
    (work / "a.py").write_text("old")
    (work / ".gitattributes").write_text("*.py filter=evil\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    first = git("rev-parse", "HEAD")
    (work / "a.py").write_text("new")
    git("commit", "-qam", "two")
    git("config", "filter.evil.smudge", f"touch {ran}; cat")
    git("config", "core.fsmonitor", f"touch {ran}")
    bare = tmp_path / "bare"
    shutil.move(str(work / ".git"), bare)
    for line, text in ((f"{bare}@{first}", "old"), (str(bare), "new")):
        scratch = tmp_path / text
        scratch.mkdir()
        folder = obtain(listed(tmp_path, line)[0], scratch, "", 60)
        assert (folder / "a.py").read_text() == text
    assert not ran.exists()
    (tmp_path / "none").mkdir()
    with pytest.raises(NotObtainedError, match="git says"):
        obtain(listed(tmp_path, f"{bare}@nosuch")[0], tmp_path / "none", "", 60)


def test_a_package_of_an_index(tmp_path: Path) -> None:
    pytest.importorskip("unearth")
    index = tmp_path / "simple"
    for name, archive in (("one", "one-1.0.tar.gz"), ("two", "two-1.0-py3-none-any.whl")):
        (index / name).mkdir(parents=True)
        (index / name / "index.html").write_text(f'<a href="../../{archive}">{archive}</a>')
    with tarfile.open(tmp_path / "one-1.0.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("one-1.0/in.py")
        tar.addfile(entry, io.BytesIO())
    with zipfile.ZipFile(tmp_path / "two-1.0-py3-none-any.whl", "w") as zipped:
        zipped.writestr("two/in.py", "1")
    for name in ("one==1.0", "two"):
        scratch = tmp_path / f"scratch-{name[:3]}"
        scratch.mkdir()
        folder = obtain(listed(tmp_path, f"pypi:{name}")[0], scratch, index.as_uri(), 60)
        assert [path.name for path in folder.rglob("*.py")] == ["in.py"]


@pytest.mark.parametrize(
    ("url", "why"),
    [("", "the package index has no archive of it"), ("http://127.0.0.1:9/simple", "ConnectError")],
)
def test_why_a_package_is_not_there(tmp_path: Path, url: str, why: str) -> None:
    pytest.importorskip("unearth")
    with pytest.raises(NotObtainedError, match=f"none: .*{why}"):
        obtain(listed(tmp_path, "pypi:none")[0], tmp_path, url or tmp_path.as_uri(), 60)


def test_what_a_killed_process_had_started_ends_with_it(tmp_path: Path) -> None:
    program = (
        "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(1); open('late', 'w')"
    )
    done = run([sys.executable, "-c", program], tmp_path, os.environ, seconds=60)
    assert done.code == -signal.SIGKILL
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_missing_folder_is_not_looked_for_in_the_index(tmp_path: Path, capsys) -> None:
    (tmp_path / "repos.txt").write_text("training-code\n")
    assert (
        main.run(
            ["fleet", str(tmp_path / "repos.txt"), "-o", str(tmp_path / "out"), "--index-url", "http://x"]
        )
        == 2
    )
    said = "line 1: not a folder, archive or Git URL: training-code (a package of the index is pypi:NAME)\n"
    assert capsys.readouterr().err == f"npumigrate: {tmp_path / 'repos.txt'}, {said}"
    assert not (tmp_path / "out").exists()
