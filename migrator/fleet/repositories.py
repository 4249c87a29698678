"""The list of repositories: one a line, with comments behind ``#``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Literal

from migrator.files.errors import SourceError, reason
from migrator.language import N_, _

Kind = Literal["folder", "archive", "package", "git"]
ARCHIVES = (".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

_SHOWN = 10  # wrong lines that are reported
# Not its name alone: a folder that is missing may be the name of anybody's package.
_PACKAGE = re.compile(r"pypi:([A-Za-z0-9][\w.-]*(?:==[\w.!+-]+)?)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Repository:
    """``name`` is its own in the list; ``source`` a path, a URL or a package; ``revision`` git's."""

    name: str
    kind: Kind
    source: str
    revision: str = ""

    @property
    def fixed(self) -> bool:
        """Whether its name alone says what it holds: a release of a package, a commit."""
        return "==" in self.source if self.kind == "package" else bool(_COMMIT.fullmatch(self.revision))


def read_list(file: Path) -> list[Repository]:
    """The repositories of a list; paths in it are relative to its folder.

    Raises SourceError, with a line for each line that names none.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else _("not UTF-8")
        raise SourceError(_("{file} cannot be read: {why}", file=file, why=why)) from None
    found: list[Repository] = []
    wrong: list[str] = []
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = _COMMENT.sub("", line).strip()
        try:
            item = _repository(entry, file, number) if entry else None
        except SourceError as error:
            wrong.append(str(error))
            continue
        if item:
            own = re.sub(r"[^\w.-]", "_", item.name).lstrip(".-") or "repository"  # as a file may be called
            every = chain([own], (f"{own}-{again}" for again in count(2)))
            name = next(each for each in every if each.lower() not in names)
            names.add(name.lower())
            found.append(replace(item, name=name))
    if wrong:
        more = [f"(+{len(wrong) - _SHOWN})"] if len(wrong) > _SHOWN else []
        raise SourceError("\n".join([*wrong[:_SHOWN], *more]))
    if not found:
        raise SourceError(_("{file} lists no repositories", file=file))
    return found


def _repository(entry: str, file: Path, number: int) -> Repository:
    if package := _PACKAGE.fullmatch(entry):
        return Repository(package[1].replace("==", "-"), "package", package[1])
    git = entry.startswith("git+")
    source, at, revision = entry.removeprefix("git+").rpartition("@")
    if not at or "/" in revision or (":" in revision and not git):  # git@host:path has no revision
        source, revision = entry.removeprefix("git+"), ""
    if git or _URL.match(source):
        return _git(source, revision, file, number)
    path = file.parent / entry
    if path.is_dir() and not _is_bare(path):
        return Repository(path.resolve().name, "folder", str(path.resolve()))
    if path.is_file() and path.name.lower().endswith(ARCHIVES):
        ends = [end for end in ARCHIVES if path.name.lower().endswith(end)]
        return Repository(path.name[: -len(max(ends, key=len))], "archive", str(path.resolve()))
    local = file.parent / source
    if local.is_dir() and (revision or _is_bare(local)):
        return _git(str(local.resolve()), revision, file, number)
    why = N_(
        "{file}, line {line}: not a folder, archive or Git URL: {entry} (a package of the index is pypi:NAME)"
    )
    raise SourceError(_(why, file=file, line=number, entry=entry))


def _git(source: str, revision: str, file: Path, number: int) -> Repository:
    if revision.startswith("-") or source.startswith("-"):  # git would take it for an option
        said = N_("{file}, line {line}: not a revision: {revision}")
        raise SourceError(_(said, file=file, line=number, revision=revision))
    name = re.split(r"[/:]", source.rstrip("/"))[-1].removesuffix(".git")
    return Repository(f"{name}-{revision[:12]}" if revision else name, "git", source, revision)


def _is_bare(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir()
