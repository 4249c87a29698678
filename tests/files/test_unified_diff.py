"""Diffs that patch(1) can apply."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.files.unified_diff import changed_files, unified_diff

LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"d\re\n", b"f\x0cg\n", b"\n", b"\xe9\n"]), max_size=20
)
ENDS = st.sampled_from([b"", b"end", b"end\r"])


def test_a_change() -> None:
    diff = unified_diff("m/a.py", b"x\ny\n", b"x\nz\n")
    assert diff == b"--- a/m/a.py\n+++ b/m/a.py\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"


def test_no_newline_at_the_end() -> None:
    diff = unified_diff("a.py", b"x", b"y")
    assert diff.endswith(b"-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n")


def test_nothing_to_say() -> None:
    assert unified_diff("a.py", b"x\n", b"x\n") == b""


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program")
@settings(max_examples=40, deadline=None)
@given(LINES, LINES, ENDS, ENDS)
def test_patch_applies_it(tmp_path_factory, old, new, old_end, new_end) -> None:
    before, after = b"".join(old) + old_end, b"".join(new) + new_end
    if not before or not after:  # patch makes and removes files for these; the tool never does
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "a file.py").write_bytes(before)
    diff = unified_diff("a file.py", before, after)
    if diff:
        command = ["patch", "-p1", "--binary", "-s", "-d", str(folder)]
        subprocess.run(command, input=diff, check=True, capture_output=True)
    assert (folder / "a file.py").read_bytes() == after


def test_lines_that_look_like_heads_are_lines(tmp_path: Path) -> None:
    for folder, text in (("a", "x\n-- a/y\n"), ("b", "x\n++ b/z\ny")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.py").write_text(text)
        (tmp_path / folder / "two.py").write_text(text)
    command = ["diff", "-ru", "a", "b"]
    diff = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout
    assert list(changed_files(diff)) == [(b"b/one.py", [2, 3], 1), (b"b/two.py", [2, 3], 1)]
    assert list(changed_files(b"")) == []
