from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.files import replacing
from migrator.files.errors import CannotWrite
from migrator.files.replacing import replace_file, staged


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path) -> None:
    file = tmp_path / "run.sh"
    file.write_bytes(b"old")
    file.chmod(0o750)
    replace_file(file, b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o750)
    assert os.listdir(tmp_path) == ["run.sh"]


def test_a_file_that_may_not_be_written_is_left_alone(tmp_path, monkeypatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as for anybody but root
    with pytest.raises(CannotWrite, match="permission denied"):
        replace_file(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])
    replace_file(tmp_path / "other", b"new")


def test_a_link_stays(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_leads_elsewhere_is_not_written_through(tmp_path, there) -> None:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    target = tmp_path / "file"
    if there:
        target.write_bytes(b"old")
    for link in (folder / "link", folder / "sub" / "two"):
        link.symlink_to("../file" if link.name == "link" else "../link")
        for within in (None, folder):
            with pytest.raises(
                CannotWrite, match=f"{link.name} is a symbolic link to .*file: name that file$"
            ):
                replace_file(link, b"new", within)
    assert (target.exists() and target.read_bytes()) == (there and b"old")
    (folder / "plain").write_bytes(b"old")
    (folder / "sub" / "three").symlink_to("../plain")
    replace_file(folder / "sub" / "three", b"new", folder)
    assert (folder / "plain").read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_standard_output_may_be_a_pipe_or_a_file(tmp_path) -> None:
    code = (
        "from pathlib import Path; from migrator.files.replacing import replace_file;"
        "replace_file(Path('/dev/stdout'), b'text')"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (answer.stdout, answer.stderr) == (b"text", b"")
    with open(tmp_path / "out", "wb") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert (tmp_path / "out").read_bytes() == b"text"
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.parametrize(
    ("name", "why"), [("no/file", "no such file or folder"), ("folder", "it is a folder")]
)
def test_what_cannot_be_written(tmp_path, name, why) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotWrite, match=f"cannot write .*{name}: {why}$"):
        replace_file(tmp_path / name, b"text")
    assert os.listdir(tmp_path) == ["folder"]


KILLED = """
import os, signal, sys
from pathlib import Path
from migrator.files.replacing import replace_file, staged
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
replace_file(Path(sys.argv[1]), b"never there, and longer")
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_what_a_killed_run_leaves_goes_with_the_next(tmp_path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"old")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(file)], cwd=Path(__file__).parents[2], check=False)
        assert file.read_bytes() == b"old"
        assert len(os.listdir(tmp_path)) == 2
    replace_file(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"new", ["train.py"])


@pytest.mark.skipif(os.name == "nt", reason="no locks")
def test_what_another_has_under_that_name_is_left_alone(tmp_path) -> None:
    import fcntl

    file, others = tmp_path / "train.py", tmp_path / "others"
    file.write_bytes(b"old")
    others.write_bytes(b"theirs")
    handle, name = replacing._file_beside(file)
    os.write(handle, b"another run's")
    replace_file(file, b"new")  # that run is at work
    assert (file.read_bytes(), Path(name).read_bytes()) == (b"new", b"another run's")
    fcntl.flock(handle, fcntl.LOCK_UN)
    for trap in (os.symlink, os.link, lambda _, name: os.mkfifo(name)):
        os.unlink(name)
        trap(others, name)
        replace_file(file, b"newer")
        assert (file.read_bytes(), others.read_bytes()) == (b"newer", b"theirs")
        assert os.path.lexists(name)
    os.close(handle)


def test_a_folder_taken_for_a_leftover_gives_no_other_run_its_name(tmp_path, monkeypatch) -> None:
    """Two runs in one folder end each other; this one comes between the folder and its lock."""
    fcntl = pytest.importorskip("fcntl")
    result, others = tmp_path / "r", contextlib.ExitStack()
    folders: list[Path] = []
    real = fcntl.flock

    def late(*given: int) -> None:
        monkeypatch.undo()
        folders.append(others.enter_context(staged(result)))
        real(*given)

    monkeypatch.setattr(fcntl, "flock", late)
    with others, staged(result) as folder:
        assert [folder] != folders
        (folder / "new").mkdir()
        (folders[0] / "new").mkdir()
