"""The lines that were changed since a git revision, committed or not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from migrator.lint.diagnostic import Diagnostic
from migrator.lint.options import ConfigError

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
ALL = ((1, 1 << 60),)

Ranges = Mapping[Path, Sequence[tuple[int, int]]]


def changed_lines(revision: str, folder: Path) -> Ranges:
    """The first and last rows of each change, by the real paths of the files in ``folder``'s repository.

    New and untracked files are changed as a whole. Raises ConfigError.
    """
    if revision.startswith("-"):
        raise ConfigError(f"--diff-base {revision}: is no revision")
    top = Path(os.fsdecode(_git(["rev-parse", "--show-toplevel"], folder).rstrip(b"\n")))
    command = [
        "diff",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--find-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ]
    output = _git([*command, "--end-of-options", f"{revision}^{{commit}}", "--"], top, revision)
    result: dict[Path, list[tuple[int, int]]] = {}
    ranges: list[tuple[int, int]] = []
    content = 0  # lines of the hunk that are still to come: they may look like anything
    for line in output.split(b"\n"):
        if content:
            content -= not line.startswith(b"\\")
        elif line.startswith(b"+++ "):
            ranges = []
            name = _unquoted(line[4:])
            if name.startswith(b"b/"):
                result[Path(os.path.realpath(top / os.fsdecode(name[2:])))] = ranges
        elif match := _HUNK.match(line):
            removed, first, added = (int(part or 1) for part in match.groups())
            content = removed + added
            if added:
                ranges.append((first, first + added - 1))
    for name in _git(["ls-files", "--others", "--exclude-standard", "-z"], top).split(b"\0"):
        if name:
            result[Path(os.path.realpath(top / os.fsdecode(name)))] = list(ALL)
    return result


def on_changed_line(item: Diagnostic, ranges: Ranges) -> bool:
    """Whether a finding touches a changed line; in a notebook, whether the file changed at all."""
    own = ranges.get(Path(os.path.realpath(item.path)), ())
    if item.cell is not None:
        return bool(own)
    return any(first <= item.end_row and item.row <= last for first, last in own)


def _git(arguments: list[str], folder: Path, revision: str = "") -> bytes:
    import subprocess

    # The user's own settings must not change the form of the output.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.quotePath=true", "-c", "diff.noprefix=false", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"--diff-base needs git: {(error.strerror or str(error)).lower()}") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if revision and any("unknown revision" in line or "bad revision" in line for line in words):
            raise ConfigError(f"--diff-base {revision}: git knows no such revision")
        raise ConfigError(f"--diff-base: git says: {words[0] if words else f'exit code {done.returncode}'}")
    return done.stdout


def _unquoted(name: bytes) -> bytes:
    name = name.split(b"\t", 1)[0] if not name.startswith(b'"') else name
    if not name.startswith(b'"'):
        return name
    body = name[1 : name.rindex(b'"')]
    escapes = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"v": b"\v", b"f": b"\f"}

    def plain(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 8)]) if code.isdigit() else escapes.get(code, code)

    return re.sub(rb"\\([0-7]{3}|.)", plain, body)
