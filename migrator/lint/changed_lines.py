"""The lines that were changed since a git revision, committed or not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from migrator.files.errors import reason
from migrator.files.unified_diff import changed_files
from migrator.findings.finding import Finding
from migrator.light import Frozen
from migrator.lint.options import ConfigError

_COMMAND = (
    "diff --unified=0 --no-color --no-ext-diff --no-textconv --text --find-renames --ignore-submodules=all"
    " --src-prefix=a/ --dst-prefix=b/".split()
)
# A repository's own configuration may name commands, which git would run. Neither they nor what the user has
# set for diffs count here; and nothing is fetched.
_SETTINGS = f"""core.quotePath=true core.fsmonitor=false core.hooksPath={os.devnull} core.pager=cat
    diff.noprefix=false diff.external=""".split()
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_OF_THE_OUTER = "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY".split()
_FILTER = re.compile(rb"filter\.[^\0]*\.(?:clean|smudge|process|required)", re.S)


class Changed(Frozen):
    """The rows that changed, by file, and all files that git knows, by their paths in ``top``."""

    top: Path
    rows: Mapping[str, Sequence[int]]
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
        return any(item.line <= row <= item.end_line for row in rows)


def changed_lines(revision: str, folder: Path) -> Changed:
    """What changed since a revision of ``folder``'s repository, committed or not. Raises ConfigError."""
    if revision.startswith("-") or not revision:
        raise ConfigError("--diff-base {revision!r} is not a revision", revision=revision)
    if ".." in revision:
        raise ConfigError(
            '--diff-base {revision} is a range: give one revision, such as "$(git merge-base main HEAD)"',
            revision=revision,
        )
    top = _top(folder)
    found = os.fsdecode(_git(["rev-parse", "--verify", revision], folder, revision).strip())
    commit = os.fsdecode(_git(["rev-parse", "--verify", f"{found}^{{commit}}"], folder, revision).strip())
    rows: dict[str, Sequence[int]] = {}
    tracked = _look(top, commit, "", rows)
    return Changed(top, rows, frozenset(tracked))


def _top(folder: Path, inner: bool = False) -> Path:
    output = _git(["rev-parse", "--show-toplevel"], folder, inner=inner)
    return Path(os.path.realpath(os.fsdecode(output.rstrip(b"\n"))))


def _look(top: Path, commit: str, prefix: str, rows: dict[str, Sequence[int]]) -> list[str]:
    """Put the rows that changed since a commit or a tree into ``rows``; gives the names that git knows.

    git would look at submodules with what their own configurations name: so each is looked at like the
    repository itself.
    """
    for name, changed, _lost in changed_files(_git([*_COMMAND, commit, "--"], top, inner=bool(prefix))):
        if name.startswith(b"b/"):
            rows[prefix + os.fsdecode(name[2:])] = changed
    tracked = []
    for entry in filter(None, _git(["ls-files", "--stage", "-z"], top, inner=bool(prefix)).split(b"\0")):
        about, _, name = entry.partition(b"\t")
        tracked.append(os.fsdecode(name))
        inner = top / tracked[-1]
        if about.startswith(b"160000 ") and (inner / ".git").exists():
            with suppress(ConfigError):  # git, too, goes on where a submodule does not have the commit
                if _top(inner, inner=True) == inner:  # and no link leads elsewhere
                    start = _start(top, commit, tracked[-1], bool(prefix))
                    _look(inner, start, f"{prefix}{tracked[-1]}/", rows)
    return tracked


def _start(top: Path, commit: str, submodule: str, inner: bool) -> str:
    """The commit of a submodule at a commit; an empty tree where it had none."""
    entry = _git(["ls-tree", "-z", "--full-tree", commit, "--", submodule], top, inner=inner).split()
    if entry[:1] == [b"160000"]:
        return entry[2].decode("ascii")
    empty = _git(["hash-object", "-t", "tree", os.devnull], top / submodule, inner=True)
    return empty.decode("ascii").strip()


def _git(arguments: list[str], folder: Path, revision: str = "", inner: bool = False) -> bytes:
    """What git prints; whatever the repository's configuration names, nothing else is run.

    ``inner``: in a submodule, for which a hook's variables do not hold. Raises ConfigError.
    """
    names = _run(["config", "--list", "--name-only", "-z"], folder, inner)[1].split(b"\0")
    filters = [os.fsdecode(name) for name in names if _FILTER.fullmatch(name)]
    if any("=" in name for name in filters):  # which git would take for the end of the name
        raise ConfigError("--diff-base: git's configuration has a filter with = in its name: rename it")
    settings = [word for name in filters for word in ("-c", f"{name}=")]
    code, output, error = _run([*settings, *arguments], folder, inner)
    if code:
        words = error.decode("utf-8", "replace").strip().splitlines()
        if revision:
            raise ConfigError("--diff-base {revision}: unknown revision", revision=revision)
        raise ConfigError("--diff-base: git: {words}", words=words[0] if words else f"exit code {code}")
    return output


def _run(arguments: list[str], folder: Path, inner: bool) -> tuple[int, bytes, bytes]:
    import shutil
    import subprocess

    folders = filter(os.path.isabs, os.get_exec_path())  # "." would be the tree
    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        raise ConfigError("--diff-base needs git: no such file or directory")
    environment = {**os.environ, **_ENVIRONMENT}
    for name in _OF_THE_OUTER if inner else ():
        environment.pop(name, None)
    command = [program, *(word for setting in _SETTINGS for word in ("-c", setting)), *arguments]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError("--diff-base needs git: {error}", error=reason(error)) from None
    return done.returncode, done.stdout, done.stderr
