"""The globs of ``--exclude``, as ``.gitignore`` reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
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
