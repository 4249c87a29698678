"""Globs of ``--exclude`` and of ``.gitignore`` with many stars are matched at once."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from migrator.files.patterns import GitIgnore, matcher
from tests.timing import bounded, grows_evenly

_NAMES: tuple[Callable[[int], str], ...] = (
    lambda size: "a" * (4 * size),
    lambda size: "a/" * size + "c",
    lambda size: "x/" + ("a" * 60 + "/") * (size // 2),
)


@pytest.mark.parametrize("name", _NAMES, ids=["long", "deep", "both"])
@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/a/" * 12 + "b", "x/" + "**/*a*a*a*a*a*ab/" * 12 + "b", "[" * 50_000]
)
def test_many_stars_do_not_take_long(tmp_path: Path, pattern: str, name: Callable[[int], str]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    ignored, excluded = GitIgnore(tmp_path), matcher([pattern])

    def match(name: str) -> None:
        assert not excluded(name, False)
        if name.count("/") < 2:  # all folders of a path are looked up
            assert not ignored.ignores(f"{tmp_path}/{name}", False)

    assert grows_evenly(match, name, 80)
    with bounded(60):
        assert not ignored.ignores(f"{tmp_path}/{name(60)}", False)


@pytest.mark.parametrize("part", ["[", "*a", "**/a/"])
def test_long_patterns_do_not_take_long(tmp_path: Path, part: str) -> None:
    (tmp_path / ".git").mkdir()

    def match(pattern: str) -> None:
        (tmp_path / ".gitignore").write_text(f"{pattern}\n")
        ignored, excluded = GitIgnore(tmp_path), matcher([pattern])
        assert not excluded("c", False)
        assert not ignored.ignores(f"{tmp_path}/c", False)

    assert grows_evenly(match, lambda size: part * size + "b", 50_000 if part == "[" else 200)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*a*b*c*d", "1a2b3c4b5d", True),
        ("*a*b*c*d", "x/1a2b3c4b5d", True),
        ("*a*b*c*d", "1a2b3c4de", False),
        ("*a*b*a*b", "abbab", True),
        ("/*a*/*b*/*c*/*d", "xay/b/cc/d", True),
        ("/*a*/*b*/*c*/*d", "xay/b/x/cc/d", False),
        ("a/**/b/**/b/**/c", "a/x/b/b/y/c", True),
        ("a/**/b/**/b/**/c", "a/b/x/y/c", False),
        ("**/a/**/a/**/a/b", "a/x/a/a/b", True),
    ],
)
def test_many_stars_match_as_in_git(tmp_path: Path, pattern: str, name: str, fits: bool) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text(f"*.py\n{pattern}\n")
    assert matcher([pattern])(name, False) is fits
    assert GitIgnore(tmp_path).ignores(f"{tmp_path}/{name}", False) is fits
    (tmp_path / ".gitignore").write_text(f"{pattern}\n!{pattern}\n")
    assert not GitIgnore(tmp_path).ignores(f"{tmp_path}/{name}", False)


def test_a_pattern_of_many_stars_for_folders(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*a*b*c*d/\n")
    ignored = GitIgnore(tmp_path)
    assert ignored.ignores(f"{tmp_path}/abcd", True)
    assert not ignored.ignores(f"{tmp_path}/abcd", False)
