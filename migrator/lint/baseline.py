"""Findings that are known and do not count: written to a file, and taken out of later runs.

A finding is known by its file, its rule and the source line it stands in, without the
blanks at both ends. So it may move, but a changed line, or one more of its kind, is new.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Callable

from migrator import __version__
from migrator.files.errors import shown
from migrator.files.replacing import replace_file
from migrator.files.source import LARGEST
from migrator.findings.finding import Finding
from migrator.language import _
from migrator.lint.options import ConfigError, read_named

_FORMAT = 1
Key = tuple[str, str, str]  # file, rule, source line
Known = Counter[Key]
Lines = Callable[[Finding], Sequence[str]]


def _keys(found: Iterable[Finding], lines: Lines, root: Path) -> Iterator[tuple[Finding, Key]]:
    for item in found:
        text = lines(item)
        line = " ".join(text[item.line - 1].split()) if item.line <= len(text) else ""
        yield item, (name_in(item.file, root), item.code, line)


def known(found: Iterable[Finding], lines: Lines, root: Path) -> Known:
    """What a baseline in the folder ``root`` would hold; ``lines`` gives those of a finding's file."""
    return Counter(key for _, key in _keys(found, lines, root))


def name_in(path: str, root: Path) -> str:
    """How a baseline in the folder ``root`` names a file."""
    return os.path.relpath(os.path.abspath(path), root).replace(os.sep, "/")


def write(file: Path, found: Iterable[Finding], lines: Lines) -> int:
    """Write the findings as a baseline and give their number. Raises CannotWrite."""
    held = known(found, lines, file.absolute().parent)
    files: dict[str, dict[str, dict[str, int]]] = {}
    for (name, code, line), count in sorted(held.items()):
        files.setdefault(name, {}).setdefault(code, {})[line] = count
    content = {"format": _FORMAT, "npumigrate": __version__, "findings": sum(held.values()), "files": files}
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    replace_file(file, text.encode("utf-8", "backslashreplace"))
    return sum(held.values())


def read(file: Path) -> Known:
    """The findings of a baseline. Raises ConfigError."""
    data = read_named(file, LARGEST)
    try:
        content = json.loads(data.decode("utf-8"))
        if content["format"] == _FORMAT:
            return Counter(
                {
                    (str(name), str(code), str(line)): int(count)
                    for name, codes in content["files"].items()
                    for code, lines in codes.items()
                    for line, count in lines.items()
                }
            )
        what = _("unsupported baseline format {content}", content=content["format"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        what = _("not a baseline")
    raise ConfigError("{file}: {what}: write it again with --write-baseline", file=shown(file), what=what)


def split(found: Sequence[Finding], held: Known, lines: Lines, root: Path) -> tuple[list[Finding], Known]:
    """The new findings, and what of the baseline is left: what was not found."""
    left = Counter(held)
    new = []
    for item, key in _keys(found, lines, root):
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(item)
    return new, +left


def gone(left: Known, root: Path, looked_for: Callable[[str, str], bool]) -> int:
    """How many findings are no more, of those that are ``left``.

    ``looked_for`` says whether a file, by its path from ``root``, was looked at and a rule used in it.
    """
    names = {name for name, _, _ in left}
    absent = {name for name in names if not os.path.lexists(os.path.join(root, name))}
    return sum(count for (name, code, _), count in left.items() if name in absent or looked_for(name, code))
