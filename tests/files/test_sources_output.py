"""The result: complete, with the same bytes and modes, in place at once or not at all."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import pytest

from migrator.files import replacing
from migrator.files.discover import Entry, discover
from migrator.files.errors import CannotWrite, ResultExists, Unreadable
from migrator.files.naming import result_folder
from migrator.files.output import SUMMARY, add, copy, output_tree, write
from migrator.files.replacing import remove, staging_prefix

if TYPE_CHECKING:
    Snapshot = Callable[[Path], dict[str, tuple[str, object]]]

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def migrate(
    source: Path, out: Path, overwrite: bool = False, line: bytes = b"import torch_npu\n"
) -> list[str]:
    """What a command does: adds a line to each Python file, copies the others, adds a report."""
    notes = []
    with output_tree(source, out, overwrite) as tree:
        for entry in discover(source, avoid=tree.result):
            if entry.kind == "python":
                write(tree, entry, line + entry.path.read_bytes())
            else:
                note = copy(tree, entry)
                if note:
                    notes.append(f"{entry.name}: {note}")
        add(tree, SUMMARY, b"{}")
    return notes


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_whole_tree_with_its_bytes_and_modes(project: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    (project / "run.sh").write_bytes(b"#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "train.py").chmod(0o444)
    (project / "data.bin").write_bytes(os.urandom(3_000_000))
    (project / "empty").mkdir()
    (project / "pkg" / "deep").chmod(0o555)
    project.chmod(0o750)
    before = snapshot(project)
    try:
        assert migrate(project, tmp_path / "new" / "out") == []
        result = tmp_path / "new" / "out" / "proj_msft"
        assert snapshot(project) == before
        found = snapshot(result)
        assert found.pop("migration_report") == ("0o40755", None)
        assert found.pop(SUMMARY) == ("0o100644", b"{}")
        for name in ("train.py", "pkg/__init__.py", "pkg/deep/ops.py"):
            mode, data = found[name]
            assert isinstance(data, bytes)
            found[name] = (mode, data[len(b"import torch_npu\n") :])
        assert found == before
        assert mode_of(result) == 0o750
        assert [path.name for path in result.parent.iterdir()] == ["proj_msft"]
        # Read-only folders are replaced and removed too.
        migrate(project, tmp_path / "new" / "out", overwrite=True)
        assert [path.name for path in result.parent.iterdir()] == ["proj_msft"]
    finally:
        remove(tmp_path / "new")
        (project / "pkg" / "deep").chmod(0o755)


def test_a_copy_is_no_setuid_program(project: Path, tmp_path: Path) -> None:
    (project / "README.md").chmod(0o4755)
    migrate(project, tmp_path)
    assert mode_of(tmp_path / "proj_msft" / "README.md") == 0o755


def test_one_file(project: Path, tmp_path: Path) -> None:
    migrate(project / "train.py", tmp_path)
    names = sorted(path.name for path in (tmp_path / "train_msft").iterdir())
    assert names == ["migration_report", "train.py"]
    assert (tmp_path / "train_msft" / "train.py").read_bytes().startswith(b"import torch_npu\n")


def test_an_input_given_as_dot_or_by_a_link(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    migrate(Path("."), Path("../out"))
    assert (tmp_path / "in" / "out" / "proj_msft" / "train.py").exists()
    (tmp_path / "alias").symlink_to(project)
    migrate(tmp_path / "alias", tmp_path)
    assert (tmp_path / "alias_msft" / "train.py").exists()


def test_odd_names_and_long_ones(project: Path, tmp_path: Path) -> None:
    names = ["a b+c.py", "模型.py", "n" * 247 + ".py", "模" * 84 + ".py", "l\nine"]
    if sys.platform not in ("win32", "darwin"):
        names.append(os.fsdecode(b"mod\xe8le.py"))
    for name in names:
        (project / name).write_bytes(b"")
    migrate(project, tmp_path)
    assert set(names) < {path.name for path in (tmp_path / "proj_msft").iterdir()}


def test_a_folder_name_that_leaves_no_room_for_the_suffix(tmp_path: Path) -> None:
    for length in (200, 250, 251):
        root = tmp_path / ("p" * length)
        root.mkdir()
        (root / "a.py").write_bytes(b"")
        out = tmp_path / "new" / "out"
        if length + len("_msft") <= 255:
            migrate(root, out)
            assert (out / f"{root.name}_msft" / "a.py").exists()
            remove(tmp_path / "new")
        else:
            with pytest.raises(CannotWrite, match=r"has 256 bytes; the limit is 255: rename the input$"):
                migrate(root, out)
            assert not (tmp_path / "new").exists()


def test_names_of_staging_folders_fit_and_differ() -> None:
    for letter in "p模🙂":
        prefixes = {staging_prefix(letter * length + "_msft") for length in range(1, 250)}
        assert len(prefixes) == 249
        assert max(len(os.fsencode(prefix)) for prefix in prefixes) <= 143 - 24


@pytest.mark.skipif(sys.platform != "linux", reason="paths of 4096 bytes")
def test_a_tree_deeper_than_the_recursion_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(24):
        os.makedirs("/".join("d" * 50))
        os.chdir("/".join("d" * 50))
    os.chdir(tmp_path)
    migrate(Path("d"), Path("out"))
    migrate(Path("d"), Path("out"), overwrite=True)
    assert sum(1 for _ in discover(Path("out/d_msft"))) == 1199 + 2
    remove(Path("d"))
    remove(Path("out"))


# Symbolic links


def test_links(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "in" / "shared"
    outside.mkdir()
    (outside / "util.py").write_bytes(b"")
    inside, outer = "{} now points to the migrated copy", "{} outside the input: its target is not migrated"
    gone = "{}, which is broken"
    # The text of each, what it becomes, and what is said of it.
    links: list[tuple[str, str, str, str]] = [
        ("abs.py", f"{project}/train.py", "train.py", inside),
        ("abs_none", "/no/such/place", "/no/such/place", outer),
        ("abs_out.py", f"{outside}/util.py", f"{outside}/util.py", outer),
        ("gone", "nowhere.py", "nowhere.py", gone),
        ("out.py", "../shared/util.py", f"{outside}/util.py", outer),
        ("pkg/above", "../..", f"{project.parent}", outer),
        ("pkg/abs_gone.py", f"{project}/pkg/no.py", "no.py", gone),
        ("pkg/abs_root", f"{project}", "..", inside),
        ("pkg/abs_slash", f"{project}/", "..", inside),
        ("pkg/back.py", "../../proj/train.py", "../train.py", inside),
        ("pkg/loop", "..", "..", ""),
        ("pkg/out", "../../shared", f"{outside}", outer),
        ("pkg/self", "self", "self", gone),
        ("pkg/up.py", "../train.py", "../train.py", ""),
        ("same.py", "train.py", "train.py", ""),
    ]
    for name, text, _new, _note in links:
        (project / name).symlink_to(text)
    notes = migrate(project, tmp_path / "out")
    result = tmp_path / "out" / "proj_msft"
    assert {name: os.readlink(result / name) for name, *_ in links} == {
        name: new for name, _, new, _ in links
    }
    assert notes == [f"{name}: link to {note.format(text)}" for name, text, _, note in links if note]
    # Beside the input a link out of it means the same as before, and keeps its text.
    migrate(project, tmp_path / "in")
    assert os.readlink(tmp_path / "in" / "proj_msft" / "out.py") == "../shared/util.py"


def test_absolute_links_into_an_input_that_is_reached_by_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "in")
    (project / "a.py").symlink_to(tmp_path / "alias" / "proj" / "train.py")
    (project / "b.py").symlink_to(project / "train.py")
    migrate(tmp_path / "alias" / "proj", tmp_path / "out")
    result = tmp_path / "out" / "proj_msft"
    assert [os.readlink(result / name) for name in ("a.py", "b.py")] == ["train.py", "train.py"]


# What is not copied


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_sockets_are_reported(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "pipe.py")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        notes = migrate(project, tmp_path)
    assert notes == ["pipe.py: named pipe: not copied", "socket: socket: not copied"]
    # What discovery took for a file may be something else by now.
    with output_tree(project, tmp_path / "b") as tree, pytest.raises(Unreadable, match=r"no longer a file"):
        copy(tree, Entry("file", "pipe.py", project / "pipe.py"))


def test_a_file_that_cannot_be_read_leaves_no_half_copy(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "data.bin").write_bytes(b"x" * 3_000_000)
    real, calls = os.read, []

    def fail(file: int, size: int) -> bytes:
        calls.append(size)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        return real(file, size)

    with output_tree(project, tmp_path) as tree:
        monkeypatch.setattr(os, "read", fail)
        with pytest.raises(Unreadable, match=r"^cannot be read: input/output error$"):
            copy(tree, Entry("file", "data.bin", project / "data.bin"))
        gone = r"^no such file or folder$"
        with pytest.raises(Unreadable, match=gone):
            copy(tree, Entry("file", "gone", project / "gone"))
        with pytest.raises(Unreadable, match=gone):
            write(tree, Entry("python", "gone.py", project / "gone.py"), b"")
        with pytest.raises(Unreadable, match=r"^cannot be read: "):
            copy(tree, Entry("link", "train.py", project / "train.py"))
        assert copy(tree, Entry("unreadable", "a", project / "a", reason="why")) == "why"
    assert list((tmp_path / "proj_msft").iterdir()) == []


@pytest.mark.skipif(ROOT, reason="root may read everything")
def test_a_file_without_permission(project: Path, tmp_path: Path) -> None:
    (project / "README.md").chmod(0)
    with pytest.raises(Unreadable, match=r"^cannot be read: permission denied$"):
        migrate(project, tmp_path)
    assert not (tmp_path / "proj_msft").exists()


# Places


def test_an_existing_result_stays_unless_it_may_be_replaced(
    project: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    migrate(project, tmp_path, line=b"first\n")
    result = tmp_path / "proj_msft"
    before = snapshot(tmp_path)
    with pytest.raises(
        ResultExists, match=r"proj_msft exists: replace it with --overwrite or choose another -o$"
    ):
        migrate(project, tmp_path)
    assert snapshot(tmp_path) == before
    migrate(project, tmp_path, overwrite=True, line=b"second\n")
    assert (result / "train.py").read_bytes().startswith(b"second")
    (result / SUMMARY).unlink()
    before = snapshot(tmp_path)
    with pytest.raises(ResultExists, match=r"has no migration_report/summary.json, .*: move it away$"):
        migrate(project, tmp_path, overwrite=True)
    assert snapshot(tmp_path) == before


def test_an_empty_folder_is_replaced_but_no_file_or_link(project: Path, tmp_path: Path) -> None:
    result = tmp_path / "proj_msft"
    result.mkdir()
    migrate(project, tmp_path, overwrite=True)
    assert (result / "train.py").exists()
    remove(result)
    result.write_bytes(b"mine")
    with pytest.raises(ResultExists, match=r"is not a folder: move it away"):
        migrate(project, tmp_path, overwrite=True)
    assert result.read_bytes() == b"mine"
    result.unlink()
    (tmp_path / "elsewhere").mkdir()
    for target in ("elsewhere", "nowhere"):
        result.symlink_to(target)
        with pytest.raises(ResultExists, match=r"is not a folder: move it away"):
            migrate(project, tmp_path, overwrite=True)
        result.unlink()


def test_a_result_that_appears_meanwhile_stays(project: Path, tmp_path: Path) -> None:
    def run() -> None:
        with output_tree(project, tmp_path):
            (tmp_path / "proj_msft").mkdir()
            (tmp_path / "proj_msft" / "mine").write_bytes(b"")

    with pytest.raises(ResultExists):
        run()
    assert [path.name for path in (tmp_path / "proj_msft").iterdir()] == ["mine"]


def test_output_inside_the_input(project: Path, snapshot: Snapshot) -> None:
    before = snapshot(project)
    migrate(project, project / "out")
    first = snapshot(project / "out" / "proj_msft")
    assert not any("proj_msft" in name for name in first)
    migrate(project, project / "out", overwrite=True)
    assert snapshot(project / "out" / "proj_msft") == first
    remove(project / "out")
    assert snapshot(project) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_places_that_do_not_go_together(
    project: Path, tmp_path: Path, snapshot: Snapshot, overwrite: bool
) -> None:
    inner = tmp_path / "in" / "proj_msft" / "proj"
    inner.mkdir(parents=True)
    (inner.parent / "migration_report").mkdir()
    (inner.parent / SUMMARY).write_bytes(b"{}")
    (tmp_path / "same").symlink_to(project)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    before = snapshot(tmp_path)
    for source, out, error, line in [
        (project, project, CannotWrite, "proj is the input: choose another output folder with -o"),
        (project, tmp_path / "same", CannotWrite, "same is the input: choose another output folder with -o"),
        (inner, tmp_path / "in", CannotWrite, "^the input is inside .*proj_msft, the output folder"),
        (Path("/"), tmp_path, CannotWrite, "^/ has no name for a result"),
        (tmp_path / "gone", tmp_path, Unreadable, "gone: no such file or folder$"),
        (Path(os.devnull), tmp_path, Unreadable, "null is neither a folder nor a file$"),
        (project, tmp_path / "file", CannotWrite, "file cannot be written: "),
        (project, tmp_path / "file" / "x", CannotWrite, "x cannot be written: not a folder: choose "),
        (project, tmp_path / "dangling", CannotWrite, "dangling cannot be written: "),
        (project, tmp_path / ("o" * 300), CannotWrite, "cannot be written: file name too long: choose"),
    ]:
        with pytest.raises(error, match=line) as caught:
            migrate(source, out, overwrite)
        assert "\n" not in str(caught.value)
        assert snapshot(tmp_path) == before


def test_a_file_of_ours_where_the_input_has_one(project: Path, tmp_path: Path) -> None:
    (project / "report").symlink_to(tmp_path)
    (project / "README.md").chmod(0o444)
    with output_tree(project, tmp_path / "out") as tree:
        for entry in discover(project):
            copy(tree, entry)
        with pytest.raises(
            CannotWrite, match=r"README.md cannot be written: file exists: another file has that"
        ):
            add(tree, "README.md", b"ours")
        add(tree, "README.md", b"ours", replace=True)
        with pytest.raises(
            CannotWrite,
            match=r"^report is a symbolic link in the input, and report/a/b.json has to be written",
        ):
            add(tree, "report/a/b.json", b"")
        with pytest.raises(CannotWrite, match=r"train.py/a.json cannot be written: "):
            add(tree, "train.py/a.json", b"")
        add(tree, "run.sh", b"", mode=0o755)
    result = tmp_path / "out" / "proj_msft"
    assert (result / "README.md").read_bytes() == b"ours"
    assert (project / "README.md").read_bytes() == b"# proj\n"
    assert mode_of(result / "run.sh") == 0o755
    assert not (tmp_path / "a").exists()


# What goes wrong while it is written

NO_SPACE = "free some space or choose another output folder with -o"
CALLS = [
    *(("write", 1), ("write", 3), ("open", 3), ("mkdir", 2), ("mkdir", 3), ("mkdir", 4)),
    *(("chmod", 1), ("symlink", 1), ("rename", 1), ("rename", 2)),
]


def fail_at(patch: pytest.MonkeyPatch, name: str, number: int, error: BaseException) -> None:
    real, calls = getattr(os, name), []

    def call(*args: object, **options: object) -> object:
        calls.append(name)
        if len(calls) == number:
            raise error
        return real(*args, **options)

    patch.setattr(os, name, call)


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(("name", "number"), CALLS)
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), MemoryError()]
)
def test_a_run_that_ends_early_leaves_everything_as_it_was(
    project: Path,
    tmp_path: Path,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    name: str,
    number: int,
    earlier: bool,
) -> None:
    if (name, number, earlier) == ("rename", 2, False):
        return  # one rename is enough where nothing has to give way
    (project / "link").symlink_to("train.py")
    out = tmp_path / "out"
    if earlier:
        migrate(project, out)
        (out / "proj_msft").chmod(0o500)
    before = snapshot(tmp_path)
    expected = CannotWrite if isinstance(error, OSError) else type(error)
    with monkeypatch.context() as patch:
        fail_at(patch, name, number, error)
        with pytest.raises(expected) as caught:
            migrate(project, out, overwrite=True)
    if expected is CannotWrite:
        assert str(caught.value).endswith("no space left on device: " + NO_SPACE)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "code", [errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.EIO]
)
@pytest.mark.parametrize("name", ["open", "mkdir"])
def test_an_output_that_takes_no_files(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    fail_at(monkeypatch, name, 3, OSError(code, os.strerror(code)))
    with pytest.raises(CannotWrite, match=f"cannot be written: {os.strerror(code).lower()}"):
        migrate(project, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_an_output_without_permission(project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(0o555)
    with pytest.raises(CannotWrite, match=r"proj_msft cannot be written: permission denied: choose another"):
        migrate(project, tmp_path / "out")
    with pytest.raises(CannotWrite, match=r"new cannot be written: permission denied: choose another"):
        migrate(project, tmp_path / "out" / "new")


def test_a_disk_that_takes_a_part_of_what_is_written(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    (project / "data.bin").write_bytes(b"0123456789")
    migrate(project, tmp_path)
    assert (tmp_path / "proj_msft" / "data.bin").read_bytes() == b"0123456789"


def test_a_file_system_without_modes(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    migrate(project, tmp_path)
    assert (tmp_path / "proj_msft" / "train.py").exists()


def test_an_error_of_the_caller_stays_his(project: Path, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match=r"mine"), output_tree(project, tmp_path / "a" / "b"):
        raise ConnectionError("mine")
    assert not (tmp_path / "a").exists()


def script(body: str, project: Path, out: Path) -> subprocess.Popen[str]:
    lines = (
        "import os, resource, signal, sys",
        "from pathlib import Path",
        f"sys.path[:0] = {[os.fspath(Path(__file__).parents[2])]!r}",
        "from migrator.files.discover import discover",
        "from migrator.files.errors import SourceError",
        "from migrator.files.output import add, copy, output_tree",
        f"project, out = Path({os.fspath(project)!r}), Path({os.fspath(out)!r})",
        body,
    )
    return subprocess.Popen([sys.executable, "-c", "\n".join(lines)], stdout=subprocess.PIPE, text=True)


RUN = """
with output_tree(project, out, overwrite=True) as tree:
    for entry in discover(project):
        copy(tree, entry)
    {}
"""
WAIT = "print('ready', flush=True); signal.pause()"

on_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and limits")


@on_posix
def test_a_file_size_limit(project: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    (project / "data.bin").write_bytes(b"x" * 3_000_000)
    migrate(project, tmp_path / "out")
    before = snapshot(tmp_path)
    body = "resource.setrlimit(resource.RLIMIT_FSIZE, (2_500_000, 2_500_000))\ntry:\n"
    body += "".join(f"  {line}\n" for line in RUN.format("").splitlines())
    process = script(body + "except SourceError as error:\n  print(error)", project, tmp_path / "out")
    printed, _ = process.communicate(timeout=900)
    assert printed == (
        f"{tmp_path}/out/proj_msft/data.bin cannot be written: file too large: "
        "raise the file size limit or choose another output folder with -o\n"
    )
    assert snapshot(tmp_path) == before


@on_posix
@pytest.mark.parametrize("earlier", [False, True])
def test_control_c(project: Path, tmp_path: Path, snapshot: Snapshot, earlier: bool) -> None:
    if earlier:
        migrate(project, tmp_path / "out")
    before = snapshot(tmp_path)
    body = "try:\n" + "".join(f"  {line}\n" for line in RUN.format(WAIT).splitlines())
    process = script(body + "except KeyboardInterrupt:\n  print('stopped')", project, tmp_path / "out")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(list((tmp_path / "out").glob(".proj_msft.partial-*/new/train.py"))) == 1
    process.send_signal(2)
    assert process.communicate(timeout=900)[0] == "stopped\n"
    assert snapshot(tmp_path) == before


@on_posix
@pytest.mark.parametrize("earlier", [False, True])
def test_what_a_killed_run_leaves_is_cleared_but_not_what_a_living_one_builds(
    project: Path, tmp_path: Path, earlier: bool
) -> None:
    out = tmp_path / "out"
    if earlier:
        migrate(project, out)
    process = script(RUN.format(WAIT), project, out)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    migrate(project, out, overwrite=True)
    assert len(list(out.glob(".proj_msft.partial-*/new/train.py"))) == 1
    process.kill()
    process.communicate(timeout=900)
    assert len(list(out.glob(".proj_msft.partial-*/new/train.py"))) == 1
    migrate(project, out, overwrite=True)
    assert [path.name for path in out.iterdir()] == ["proj_msft"]


@on_posix
def test_a_run_that_is_killed_between_two_renames_gives_the_old_result_back(
    project: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    out = tmp_path / "out"
    migrate(project, out, line=b"first\n")
    before = snapshot(out)
    die = "real = os.rename\n    os.rename = lambda a, b: (real(a, b), os.kill(os.getpid(), 9))"
    script(RUN.format(die), project, out).communicate(timeout=900)
    assert not (out / "proj_msft").exists()
    with pytest.raises(ResultExists):
        migrate(project, out)
    assert snapshot(out) == before


def test_two_runs_at_once(project: Path, tmp_path: Path) -> None:
    def run() -> None:
        with output_tree(project, tmp_path) as first, output_tree(project, tmp_path) as second:
            assert first.building.parent != second.building.parent
            add(first, SUMMARY, b"first")
            add(second, SUMMARY, b"second")

    with pytest.raises(ResultExists, match=r"--overwrite"):
        run()  # the second one is put in place first, and the first one does not replace it
    assert (tmp_path / "proj_msft" / SUMMARY).read_bytes() == b"second"


def test_a_staging_folder_that_another_run_takes_for_a_leftover_is_given_up(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = replacing._lock, []

    def lock(folder: Path) -> tuple[bool, int | None]:
        taken.append(folder)
        if len(taken) == 1:  # locked and about to be removed
            return True, None
        if len(taken) == 2:
            folder.rmdir()
        return real(folder)

    monkeypatch.setattr(replacing, "_lock", lock)
    with output_tree(project, tmp_path) as tree:
        assert tree.building.parent == taken[2]
    assert (tmp_path / "proj_msft").is_dir()


def test_results_of_two_inputs_do_not_meet(project: Path, tmp_path: Path) -> None:
    assert result_folder(project, tmp_path) == tmp_path / "proj_msft"
    assert result_folder(project / "train.py", tmp_path) == tmp_path / "train_msft"
    assert result_folder(Path("a.b"), tmp_path) == tmp_path / "a_msft"  # no folder: taken for a file
    (tmp_path / "v1.0").mkdir()
    assert result_folder(tmp_path / "v1.0", tmp_path) == tmp_path / "v1.0_msft"
