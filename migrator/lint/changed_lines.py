"""The lines that were changed since a git revision, committed or not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.files.errors import reason
from migrator.findings.finding import Finding
from migrator.lint.options import ConfigError

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_COMMAND = (
    "diff",
    "--unified=0",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--text",
    "--find-renames",
    "--submodule=diff",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


@dataclass(frozen=True)
class Changed:
    """The rows that changed, by file, and all files that git knows, by their paths in ``top``."""

    top: Path
    rows: Mapping[str, Sequence[tuple[int, int]]]
    tracked: frozenset[str]

    def touches(self, item: Finding) -> bool:
        """Whether a finding is on a changed line; in a notebook, whether the file changed at all.

        What git does not know, an ignored file or another repository inside of this one, is new as a whole.
        """
        name = Path(os.path.relpath(os.path.realpath(item.file), self.top))
        rows = self.rows.get(name.as_posix())
        if rows is None:  # of a submodule git knows its folder
            return not any(known.as_posix() in self.tracked for known in (name, *name.parents))
        if item.cell is not None:
            return bool(rows)
        return any(first <= item.end_line and item.line <= last for first, last in rows)


def changed_lines(revision: str, folder: Path) -> Changed:
    """What changed since a revision of ``folder``'s repository, committed or not. Raises ConfigError."""
    if revision.startswith("-") or not revision:
        raise ConfigError(f"--diff-base {revision!r} is no revision")
    if ".." in revision:
        raise ConfigError(
            f'--diff-base {revision} is a range: give one revision, such as "$(git merge-base main HEAD)"'
        )
    top = Path(os.path.realpath(os.fsdecode(_git(["rev-parse", "--show-toplevel"], folder).rstrip(b"\n"))))
    found = os.fsdecode(_git(["rev-parse", "--verify", revision], folder, revision).strip())
    commit = os.fsdecode(_git(["rev-parse", "--verify", f"{found}^{{commit}}"], folder, revision).strip())
    output = _git([*_COMMAND, commit, "--"], top)
    tracked = _git(["ls-files", "-z"], top).split(b"\0")
    return Changed(top, _rows(output), frozenset(map(os.fsdecode, tracked)))


def _rows(diff: bytes) -> dict[str, list[tuple[int, int]]]:
    """The added rows of each file. There may be context: git gives it for submodules."""
    result: dict[str, list[tuple[int, int]]] = {}
    rows: list[tuple[int, int]] = []
    before = after = row = 0  # lines of the hunk that are still to come: they may look like anything
    for line in diff.split(b"\n"):
        if before or after:
            kind = line[:1] or b" "
            before -= kind in b"- "
            after -= kind in b"+ "
            if kind == b"+":
                rows.append((row, row))
            row += kind in b"+ "
        elif line.startswith(b"+++ "):
            rows = []
            name = _unquoted(line[4:])
            if name.startswith(b"b/"):
                result[os.fsdecode(name[2:])] = rows
        elif match := _HUNK.match(line):
            before, row, after = (int(part or 1) for part in match.groups())
    return result


def _git(arguments: list[str], folder: Path, revision: str = "") -> bytes:
    import subprocess

    # The user's own settings must not change the form of the output.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.quotePath=true", "-c", "diff.noprefix=false", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"--diff-base needs git: {reason(error)}") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if revision:
            raise ConfigError(f"--diff-base {revision}: git knows no such revision")
        raise ConfigError(f"--diff-base: git says: {words[0] if words else f'exit code {done.returncode}'}")
    return done.stdout


def _unquoted(name: bytes) -> bytes:
    """A file's name as it is: git puts quotes around one with other than plain characters."""
    if not name.startswith(b'"'):
        return name.split(b"\t", 1)[0]
    return name[1 : name.rindex(b'"')].decode("unicode_escape").encode("latin-1")
