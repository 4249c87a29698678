"""The globs of ``--exclude``, as ``.gitignore`` reads them; what Git's files leave out, and their commit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

from migrator.files.errors import SourceError, Unreadable
from migrator.files.source import read_settings

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Matcher = Callable[[str, bool], bool]
_FEW_STARS = 3
_COMMIT = r"[0-9a-f]{40,64}"


def matcher(patterns: Sequence[str]) -> Matcher:
    """A function of a name (relative, with ``/``) and whether it is a folder: does a pattern match?

    ``*``, ``?`` and ``[a-z]`` stay inside one part of a path, ``**`` spans any number of parts. A pattern
    without ``/`` matches at every depth, one with a ``/`` at its start or inside from the root on; one with
    ``/`` at its end matches folders only. ``\\`` takes the next character as it is. Negation (``!``) is not
    supported. Raises SourceError for a pattern it cannot read.
    """
    known = [(pattern, regex) for pattern in patterns if (regex := expression(pattern)) is not None]
    if not known:
        return lambda _name, _folder: False
    is_folder = re.compile("|".join(regex for _pattern, regex in known), re.DOTALL)
    files = (regex for pattern, regex in known if not pattern.endswith("/"))
    is_file = re.compile("|".join(files) or r"(?!)", re.DOTALL)
    return lambda name, folder: bool((is_folder if folder else is_file).fullmatch(name))


def expression(pattern: str) -> str | None:
    """The regular expression for the names that a pattern matches; None where it matches none.

    It never tries again what one star took: behind it stands what comes next, and the first place where that
    fits is as good as any (``fnmatch.translate`` does the same). Raises SourceError.
    """
    path = pattern.rstrip("/")
    anchored = "/" in path
    while path.startswith("./"):
        path = path[2:]
    parts = [part for part in path.split("/") if part]
    if not parts:
        return None
    runs = [""] if anchored else ["", ""]  # of parts, between those that are **
    for part in parts[:-1]:
        if part == "**":
            runs.append("")
        else:
            runs[-1] += _part(part) + "/"
    runs[-1] += ".+" if parts[-1] == "**" else _part(parts[-1])
    first, *middle = runs
    regex = first + "".join(_once(f"(?:.*?/)??{run}") for run in middle[:-1] if run)
    regex += f"(?:.*/)?{middle[-1]}" if middle else ""
    try:
        re.compile(regex)
    except re.error as error:
        raise SourceError("{pattern}: {msg}: correct the pattern", pattern=pattern, msg=error.msg) from error
    return f"(?:{regex})"


_TOKEN = re.compile(
    r"(?P<stars>\*+) | (?P<any>\?) | \[(?P<not>[!^]?)(?P<set>\]?[^\]]{0,100})\]"
    r" | \\(?P<quoted>.) | (?P<plain>.)",
    re.VERBOSE | re.DOTALL,
)


_numbers = count()


def _once(regex: str) -> str:
    """An expression that is matched in one way, and never in another one: atomic, as Python 3.11 has it."""
    name = f"once{next(_numbers)}"
    return f"(?=(?P<{name}>{regex}))(?P={name})"


def _part(part: str) -> str:
    runs = [""]  # of what stands between stars
    for token in _TOKEN.finditer(part):
        regex = ""
        if token["stars"]:
            runs.append("")
        elif token["any"]:
            regex = "[^/]"
        elif token["set"]:
            body = re.sub(r"([\\\[\]&~|^])", r"\\\1", token["set"])
            regex = f"(?!/)[{'^' if token['not'] else ''}{body}]"
        else:
            regex = re.escape(token["quoted"] or token["plain"] or token.group())
        runs[-1] += regex
    first, *rest = runs
    middle = "".join(_once(f"[^/]*?{run}") for run in rest[:-1])
    return first + middle + "".join(f"[^/]*{run}" for run in rest[-1:])


class GitIgnore:
    """Answers for absolute paths; reads the files of each folder once.

    Outside of a git repository, the ``.gitignore`` files from ``top`` on count.
    """

    def __init__(self, top: Path) -> None:
        self._top = str(repository(top) or top)
        self._known: dict[str, tuple[tuple[int, GitIgnoreSpec], ...]] = {}

    def ignores(self, path: str, folder: bool) -> bool:
        """Whether the file or folder is left out, the folders around it being not."""
        name = path + "/" if folder else path
        for start, spec in self._around(os.path.dirname(path)):
            # The nearest file that says something of a path decides.
            verdict = spec.check_file(name[start:]).include
            if verdict is not None:
                return verdict
        return False

    def _around(self, folder: str) -> tuple[tuple[int, GitIgnoreSpec], ...]:
        """What a folder and those around it leave out, the nearest first, and where the paths below begin."""
        if folder not in self._known:
            parent = os.path.dirname(folder)
            outer = () if folder in (self._top, parent) else self._around(parent)
            spec = _spec(Path(folder))
            self._known[folder] = ((len(folder.rstrip("/")) + 1, spec), *outer) if spec else outer
        return self._known[folder]


def repository(folder: Path) -> Optional[Path]:
    """The root of the git repository around an absolute folder, None outside of one."""
    if os.path.exists(folder / ".git"):
        return folder
    return repository(folder.parent) if folder.parent != folder else None


def commit_of(folder: Path) -> str:
    """The commit that a folder of a Git repository is at; empty where none is known.

    Git's files say so. Git itself does not run, because the repository's own settings can start programs.
    """
    root = repository(folder.resolve())
    with suppress(Unreadable):
        git = Path(root or os.devnull, ".git")
        if git.is_file():  # another work tree of a repository
            git = git.parent / _text(git).partition("gitdir:")[2].strip()
        shared = git / _text(git / "commondir") if (git / "commondir").exists() else git
        said = _text(git / "HEAD")
        name = said.partition("ref: ")[2]
        if name and (shared / name).exists():
            said = _text(shared / name)
        elif name:
            rows = map(str.split, _text(shared / "packed-refs").splitlines())
            said = next((row[0] for row in rows if row[1:] == [name]), "")
        return said if re.fullmatch(_COMMIT, said) else ""
    return ""


def _text(file: Path) -> str:
    return read_settings(file).decode("utf-8", "replace").strip()


def _spec(folder: Path) -> Optional[GitIgnoreSpec]:
    lines: list[str] = []
    for name in (".git/info/exclude", ".gitignore"):
        try:
            lines += read_settings(folder / name).decode("utf-8", "replace").splitlines()
        except Unreadable:
            continue
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec([pattern for line in lines for pattern in _patterns(line)])


def _patterns(line: str) -> Sequence[Any]:
    """The pattern of a line, in a list; none where git takes no notice of it.

    For many stars pathspec makes an expression that tries all ways to share a name out among them: with ten
    that takes years.
    """
    from pathspec import GitIgnoreSpec
    from pathspec.pattern import RegexPattern

    try:
        if line.count("*") <= _FEW_STARS or line.startswith("#"):
            return GitIgnoreSpec.from_lines([line]).patterns
        wanted = line.rstrip()
        negated = wanted.startswith("!")
        regex, end = expression(wanted[negated:]) or "(?!)", "" if wanted.endswith("/") else "|$"
        return [RegexPattern(re.compile(rf"(?s){regex}(?:/{end})"), not negated)]
    except Exception:  # that of pathspec, or of the expression it makes
        return []
