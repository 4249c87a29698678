"""The globs of ``--exclude``, as ``.gitignore`` reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable

from migrator.files.errors import SourceError

Matcher = Callable[[str, bool], bool]


def matcher(patterns: Sequence[str]) -> Matcher:
    """A function of a name (relative, with ``/``) and whether it is a folder: does a pattern match?

    ``*``, ``?`` and ``[a-z]`` stay inside one part of a path, ``**`` spans any
    number of parts. A pattern without ``/`` matches at every depth, one with a
    ``/`` at its start or inside from the root on; one with ``/`` at its end
    matches folders only. ``\\`` takes the next character as it is. Negation
    (``!``) is not supported. Raises SourceError for a pattern it cannot read.
    """
    folders, files = [], []
    for pattern in patterns:
        regex = _regex(pattern)
        if regex is None:
            continue
        folders.append(regex)
        if not pattern.endswith("/"):
            files.append(regex)
    if not folders:
        return lambda _name, _folder: False
    is_folder = re.compile("|".join(folders), re.DOTALL)
    is_file = re.compile("|".join(files) or r"(?!)", re.DOTALL)
    return lambda name, folder: bool((is_folder if folder else is_file).fullmatch(name))


def _regex(pattern: str) -> str | None:
    path = pattern.rstrip("/")
    anchored = "/" in path
    while path.startswith("./"):
        path = path[2:]
    parts = [part for part in path.split("/") if part]
    if not parts:
        return None
    regex = "" if anchored else "(?:.*/)?"
    for part in parts[:-1]:
        regex += "(?:.*/)?" if part == "**" else _part(part) + "/"
    regex += ".+" if parts[-1] == "**" else _part(parts[-1])
    try:
        re.compile(regex)
    except re.error as error:
        raise SourceError(f"{pattern}: {error.msg}: correct the pattern") from error
    return f"(?:{regex})"


_TOKEN = re.compile(
    r"(?P<stars>\*+) | (?P<any>\?) | \[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\] | \\(?P<quoted>.) | (?P<plain>.)",
    re.VERBOSE | re.DOTALL,
)


def _part(part: str) -> str:
    regex = ""
    for token in _TOKEN.finditer(part):
        if token["stars"]:
            regex += "[^/]*"
        elif token["any"]:
            regex += "[^/]"
        elif token["set"]:
            body = re.sub(r"([\\\[\]&~|^])", r"\\\1", token["set"])
            regex += f"(?!/)[{'^' if token['not'] else ''}{body}]"
        else:
            regex += re.escape(token["quoted"] or token["plain"] or token.group())
    return regex
