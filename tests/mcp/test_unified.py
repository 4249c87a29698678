from __future__ import annotations

import subprocess
from pathlib import Path

from migrator.mcp.unified import changed_files, cut


def test_lines_that_look_like_heads_are_lines(tmp_path: Path) -> None:
    for folder, text in (("a", "x\n-- a/y\n"), ("b", "x\n++ b/z\ny")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.py").write_text(text)
        (tmp_path / folder / "two.py").write_text(text)
    command = ["diff", "-ru", "a", "b"]
    diff = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert list(changed_files(diff)) == [("one.py", 2, 1), ("two.py", 2, 1)]
    assert list(changed_files("")) == []


def test_a_text_is_cut_between_lines() -> None:
    assert cut("one\ntwo\n", 8) == ("one\ntwo\n", True)
    assert cut("one\ntwo\n", 7) == ("one\n", False)
