"""Which files of a project a file imports."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

Read = Callable[[str], Optional[str]]


def import_pattern(packages: Iterable[str]) -> str:
    """An expression for the imports of packages in a text behind a line's end; its group is the package."""
    return rf"\n[ \t]*(?:from|import(?:[^\n#]*,)?)[ \t]+({'|'.join(map(re.escape, packages))})\b"


def imported_names(nodes: Iterable[Any]) -> Iterator[tuple[ast.alias, str, str, str]]:
    """What imports among nodes bring: the place, the name that it binds, the module, and the name in that."""
    for node in nodes:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            if isinstance(node, ast.Import):
                yield alias, (alias.asname or alias.name), alias.name, ""
            else:
                module = "." * node.level + (node.module or "")
                yield alias, (alias.asname or alias.name), module, alias.name if alias.name != "*" else ""


def place_of_import(
    importer: str, entry: str, module: str, attribute: str, read: Read
) -> tuple[str, str] | None:
    """The file, and the name in it, that an import means; None where it is none of the project's.

    ``entry`` is the script that is started: Python looks beside it. ``read`` gives a file's text, None where
    there is none.
    """
    level = len(module) - len(module.lstrip("."))
    if level:
        folders = [posixpath.normpath(posixpath.join(posixpath.dirname(importer), *[".."] * (level - 1)))]
    else:
        folders = list(dict.fromkeys([posixpath.dirname(entry), ""]))
    parts = [part for part in module.lstrip(".").split(".") if part]
    for folder in folders:
        base = posixpath.normpath(posixpath.join(folder, *parts)) if folder or parts else "."
        places = (
            [(f"{base}/{attribute}.py", ""), (f"{base}/{attribute}/__init__.py", "")] if attribute else []
        )
        places += [(f"{base}.py", attribute), (f"{base}/__init__.py", attribute)] if parts else []
        for name, inside in places:
            if read(posixpath.normpath(name)) is not None:
                return posixpath.normpath(name), inside
    return None
