"""What lies in a project: kinds, order, loops, odd names, and what is left out."""

from __future__ import annotations

import os
import socket
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.files import discover as discover_module
from migrator.files.discover import Entry, discover, names_python
from migrator.files.document import is_of_ci
from migrator.files.errors import SourceError, Unreadable
from migrator.files.naming import result_folder
from migrator.files.patterns import matcher
from migrator.files.replacing import remove, staging_prefix

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def kinds(root: Path, exclude: tuple[str, ...] = (), avoid: Path | None = None) -> list[str]:
    return [f"{entry.name} {entry.kind}" for entry in discover(root, exclude, avoid)]


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_names_come_in_order_and_folders_before_what_they_hold(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.pyi", "a/b/c.pyw", "a.py", "A.PY", "a/b.txt", "notes")
    (tmp_path / "empty").mkdir()
    expected = ["A.PY python", "a folder", "a/b folder", "a/b/c.pyw python", "a/b.txt file"]
    expected += ["a/z.pyi python", "a.py python", "b.py python", "empty folder", "notes file"]
    assert kinds(tmp_path) == expected
    assert [f"{entry.path} {entry.kind}" for entry in discover(tmp_path)] == [
        f"{tmp_path}/{each}" for each in expected
    ]


@pytest.mark.parametrize(
    ("start", "is_python"),
    [
        (b"#!/usr/bin/env python3\nimport torch", True),
        (b"#!/usr/bin/python3.11 -u\n", True),
        (b"#! /usr/bin/env -S PYTHONPATH=. python -u\r\n", True),
        (b"#!/opt/python/bin/bash\n", False),
        (b"#!/bin/sh\nexec python $0", False),
        (b"#!/usr/bin/env\n", False),
        (b"#!\n", False),
        (b"#! ", False),
        (b"import torch\n", False),
        (b"", False),
    ],
)
def test_a_script_without_extension_is_python_by_its_first_line(
    tmp_path: Path, start: bytes, is_python: bool
) -> None:
    assert names_python(start) is is_python
    (tmp_path / "train").write_bytes(start)
    (tmp_path / "train.sh").write_bytes(start)
    other = "text" if start.startswith((b"#!/bin/sh", b"#!/opt")) else "file"
    assert kinds(tmp_path) == [f"train {'python' if is_python else other}", "train.sh text"]


def test_version_control_is_copied_and_never_python(tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", ".git/hooks/check.py", ".github/check.py")
    (tmp_path / ".git/hooks/pre-commit").write_bytes(b"#!/usr/bin/env python\n")
    assert kinds(tmp_path) == [
        *(".git folder", ".git/HEAD file", ".git/hooks folder", ".git/hooks/check.py file"),
        *(".git/hooks/pre-commit file", ".github folder", ".github/check.py python"),
    ]


def test_caches_and_environments_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a/__pycache__/a.pyc", ".mypy_cache/x.py", "venv/pyvenv.cfg", "venv/lib/torch.py")
    make(tmp_path, "my/conda-meta/x", "node_modules/gyp/a.py", "env/a.py", "pkg.egg-info/PKG-INFO")
    found = kinds(tmp_path)
    skipped = [each for each in found if each.endswith(" skipped")]
    assert skipped == [f"{name} skipped" for name in (".mypy_cache", "a/__pycache__", "my", "venv")]
    assert {"node_modules/gyp/a.py python", "env/a.py python", "pkg.egg-info/PKG-INFO file"} <= {*found}
    assert {entry.reason for entry in discover(tmp_path) if entry.kind == "skipped"} == {
        "tool cache: not copied",
        "virtual environment: not copied",
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    make(root, "a/real.py")
    targets = {"a/up": "..", "a/self": "self", "gone.py": "x.py", "out": f"{tmp_path}", "b.py": "a/real.py"}
    for name, target in targets.items():
        (root / name).symlink_to(target)
    links = ("a/self", "a/up", "b.py", "gone.py", "out")
    assert kinds(root) == ["a folder", "a/real.py python", *(f"{name} link" for name in links)]


def test_a_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    make(tmp_path / "proj", "a.py")
    (tmp_path / "link").symlink_to("proj")
    (tmp_path / "link.py").symlink_to("proj/a.py")
    assert kinds(tmp_path / "link") == ["a.py python"]
    assert kinds(tmp_path / "link.py") == ["link.py python"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    monkeypatch.chdir(tmp_path)  # the path of a socket may be no longer than about 100 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        entries = list(discover(tmp_path))
    assert [(entry.name, entry.kind, entry.reason) for entry in entries] == [
        ("pipe.py", "special", "named pipe: not copied"),
        ("socket", "special", "socket: not copied"),
    ]
    assert [entry.kind for entry in discover(tmp_path / "pipe.py")] == ["special"]
    if Path("/dev/null").exists():
        assert [entry.reason for entry in discover(Path("/dev/null"))] == ["device: not copied"]


ODD = ["a b.py", "a+b.py", "模型.py", "é.py", "a\nb.py", "-rf.py", "x" * 247 + ".py", "'\"$(x).py"]


def test_odd_names(tmp_path: Path) -> None:
    make(tmp_path, *ODD)
    assert kinds(tmp_path) == [f"{name} python" for name in sorted(ODD)]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode on this system")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"mod\xe8le.py"), "wb"):
        pass
    (entry,) = discover(tmp_path)
    assert (entry.name, entry.kind) == ("mod\udce8le.py", "python")
    assert entry.path.read_bytes() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="paths of 4096 bytes")
def test_a_tree_deeper_than_the_recursion_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    depth = 0
    home = os.getcwd()
    while depth < 1500:  # in steps: the path from / would be too long for one call
        os.makedirs("/".join("d" * 50))
        os.chdir("/".join("d" * 50))
        depth += 50
    os.chdir(home)
    assert sum(1 for _ in discover(Path("d"))) == 1499
    remove(Path("d"))
    assert not os.path.lexists("d")


@pytest.mark.skipif(sys.platform != "linux", reason="paths of 4096 bytes")
def test_a_path_too_long_for_the_system_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(25):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    monkeypatch.chdir(tmp_path)
    *_, last = discover(tmp_path)
    assert (last.kind, last.reason) == ("unreadable", "cannot be read: file name too long: not copied")
    folder = "d" * 200
    depth = 0
    while os.path.isdir(folder):  # pytest itself cannot remove such a tree
        os.chdir(folder)
        depth += 1
    for _ in range(depth):
        os.chdir("..")
        os.rmdir(folder)


def refuse(_path: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/x.py", "b.py")
    real = discover_module.listing
    monkeypatch.setattr(
        discover_module, "listing", lambda path: refuse(path) if path.endswith("a") else real(path)
    )
    unreadable, readable = discover(tmp_path)
    reason = "cannot be read: permission denied: not copied"
    assert unreadable == Entry("unreadable", "a", tmp_path / "a", reason=reason)
    assert readable.name == "b.py"


@pytest.mark.skipif(ROOT, reason="root may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    make(tmp_path, "a/x.py", "b")
    (tmp_path / "a").chmod(0)
    (tmp_path / "b").chmod(0)
    try:
        assert kinds(tmp_path) == ["a unreadable", "b file"]
    finally:
        (tmp_path / "a").chmod(0o700)


def test_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable, match=r"gone: no such file or folder"):
        discover(tmp_path / "gone")
    monkeypatch.setattr(discover_module, "listing", refuse)
    with pytest.raises(Unreadable, match=r"cannot be read: permission denied"):
        discover(tmp_path)


def test_one_file(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py", "c.txt")
    assert list(discover(tmp_path / "a.py")) == [Entry("python", "a.py", tmp_path / "a.py")]
    assert list(discover(tmp_path / "b.py", ["b*"])) == [Entry("python", "b.py", tmp_path / "b.py", True)]
    assert kinds(tmp_path / "c.txt") == ["c.txt file"]


def test_the_result_inside_the_input_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    make(root, "a.py", "out/keep.py", "out/proj_msft/a.py", f"out/{staging_prefix('proj_msft')}12/new/a.py")
    python = ["a.py python", "out/keep.py python"]
    avoid = result_folder(root, root / "out")
    assert avoid == root / "out" / "proj_msft"
    assert [each for each in kinds(root, avoid=avoid) if each.endswith(" python")] == python
    (tmp_path / "elsewhere").symlink_to("proj/out")
    avoid = result_folder(root, tmp_path / "elsewhere")
    assert [each for each in kinds(root, avoid=avoid) if each.endswith(" python")] == python
    assert len(kinds(root, avoid=tmp_path / "other" / "proj_msft")) == len(kinds(root))
    make(root, "proj_msft/a.py", f"{staging_prefix('proj_msft')}7/new/a.py")
    skipped = [each for each in kinds(root, avoid=root / "proj_msft") if each.endswith(" skipped")]
    assert skipped == [f"{staging_prefix('proj_msft')}7 skipped", "proj_msft skipped"]


def test_excluded_things_are_marked_with_all_they_hold(tmp_path: Path) -> None:
    make(tmp_path, "tests/a/b.py", "tests/c.ipynb", "x/tests/d.py", "e.ipynb", "f.py")
    excluded = [entry.name for entry in discover(tmp_path, ["/tests/", "*.ipynb"]) if entry.excluded]
    assert excluded == ["e.ipynb", "tests", "tests/a", "tests/a/b.py", "tests/c.ipynb"]


@pytest.mark.parametrize(
    ("pattern", "matches", "differs"),
    [
        ("build", ["build", "a/build"], ["builds", "build.py", "build/a"]),
        ("*.ipynb", ["a.ipynb", "x/.ipynb"], ["a.ipynb.py"]),
        ("third_party/", ["third_party/", "a/third_party/"], ["third_party"]),
        ("tests/**", ["tests/a", "tests/a/b.py"], ["tests", "x/tests/a"]),
        ("**/tests", ["tests", "a/b/tests"], ["tests/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("/a", ["a"], ["x/a"]),
        ("./a/b", ["a/b"], ["x/a/b"]),
        ("a/*.py", ["a/x.py"], ["a/b/x.py"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axb", "x/axxb"], ["a/b"]),
        ("?.py", ["a.py"], ["ab.py", ".py"]),
        ("[a-c].py", ["b.py"], ["d.py"]),
        ("[!a-c].py", ["d.py"], ["b.py", "x/a.py"]),
        ("[]x].py", ["].py", "x.py"], ["y.py"]),
        ("[a.py", ["[a.py"], ["a.py"]),
        ("a[^b]c", ["axc"], ["a/c", "abc"]),
        (r"\*.py", ["*.py"], ["a.py"]),
        ("a.b", ["a.b"], ["axb"]),
        ("a\nb", ["a\nb"], ["a"]),
        ("", [], ["a", "a/"]),
        ("/", [], ["a", "a/"]),
    ],
)
def test_patterns(pattern: str, matches: list[str], differs: list[str]) -> None:
    match = matcher([pattern])
    for name in matches + differs:
        assert match(name.rstrip("/"), name.endswith("/")) is (name in matches), name


def test_a_pattern_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"^--exclude \[z-a\]: bad character range z-a: correct the pattern$"
    ):
        discover(tmp_path, ["[z-a]"])


@pytest.mark.filterwarnings("error")
@given(st.text("ab*?[]!^-/\\.|&~{}()"), st.text("ab/.[]"))
def test_any_pattern_matches_or_is_refused(pattern: str, name: str) -> None:
    try:
        match = matcher([pattern])
    except SourceError:
        return
    assert match(name, True) in (True, False)


def test_discovery_holds_no_tree(tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}/a.py" for number in range(50)))
    entries = discover(tmp_path)
    assert [entry.name for entry in islice(entries, 2)] == ["0", "0/a.py"]
    for number in range(1, 50):
        (tmp_path / str(number) / "a.py").rename(tmp_path / str(number) / "b.py")
    assert [entry.name for entry in islice(entries, 2)] == ["1", "1/b.py"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (".github/workflows/a.yml app/.circleci/config.yml .gitlab-ci.yml ci/azure-pipelines.yml", True),
        ("conf/train.yaml github/workflows/test.yml docker-compose.yml", False),
    ],
)
def test_files_of_ci_systems(names: str, expected: bool) -> None:
    assert {is_of_ci(name) for name in names.split()} == {expected}
