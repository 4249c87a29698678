"""Where a package of ours lies in a project's result, and how each file imports it.

A script finds what lies beside it; a file of a package is asked for by the name that others give to it. Which
of the two a file is, is told by the imports of the project's files, as they are written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from migrator.project.imports import Read
from migrator.project.module_names import folders_around

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b[ \t(]*([\w, \t]*)|import[ \t]+([\w.]+))", re.M
)
_STARTED = re.compile(r"^if\s+__name__\s*==", re.M)
_DOES = re.compile(r"^[ \t]*(?:from|import|def|class|if|for|while|with|try|async|print)\b", re.M)


class Place(NamedTuple):
    """The folder in which the package lies for a file, empty for the project's, and the import statement.

    That is empty for settings that no file imports: what reads them may take no import.
    """

    folder: str
    statement: str


def places(files: Iterable[str], read: Read, package: str) -> Mapping[str, Place]:
    """The place for each of the Python files; ``read`` gives their texts."""
    every = list(files)
    texts = {name: text for name in every if (text := read(name)) is not None}
    project = _Files(frozenset(texts), frozenset(filter(None, map(_library, texts, texts.values()))))
    roots: dict[str, str] = {}
    imported: set[str] = set()  # last parts of what is imported relatively
    for name, text in texts.items():
        imported.update(_relative(text))
        for module in _absolute(text):
            found = project.find(name, module)
            if found is not None:
                roots.setdefault(found[0], found[1])
    found_places = {}
    for name in every:
        place = _place(project, roots, name, texts.get(name, ""), package)
        plain = name in texts and name not in roots and not _DOES.search(texts[name])
        if plain and posixpath.basename(name)[: -len(".py")] not in (*imported, "__init__"):
            place = place._replace(statement="")
        found_places[name] = place
    return found_places


def _library(name: str, text: str) -> str:
    """The folder of a package whose ``__init__.py`` imports modules of its own; empty for another file."""
    folder, _, file = name.rpartition("/")
    own = posixpath.basename(folder)
    named = ((source or module).partition(".")[0] for source, _, module in _IMPORT.findall(text))
    return folder if file == "__init__.py" and any(each in ("", own) for each in named) else ""


class _Files:
    """The files of a project, the folders that hold some, and those that are surely packages."""

    def __init__(self, names: frozenset[str], libraries: frozenset[str]) -> None:
        self.names = names
        self.libraries = libraries
        self.folders = {folder for name in names for folder in folders_around(name)}

    def is_package(self, folder: str) -> bool:
        return posixpath.join(folder, "__init__.py") in self.names

    def find(self, importer: str, module: str) -> tuple[str, str] | None:
        """The file that a module is to a file, and the folder from which Python looks for it."""
        folders = folders_around(importer)
        if self.is_package(folders[0]):
            folders = [*folders[1:], folders[0]]  # in a package, siblings come last
        first, _, rest = module.partition(".")
        for folder in folders:
            start = posixpath.join(folder, first)
            if start not in self.folders and f"{start}.py" not in self.names:
                continue
            path = posixpath.join(start, *rest.split(".")) if rest else start
            while path != folder:
                for name in (f"{path}.py", posixpath.join(path, "__init__.py")):
                    if name in self.names:
                        return name, folder
                path = posixpath.dirname(path)
        return None


def _absolute(text: str) -> Iterator[str]:
    """The modules that a text imports by absolute names, with what it takes from them: it may be modules."""
    for source, names, module in _IMPORT.findall(text):
        for each in (source, module):
            if each and not each.startswith("."):
                yield each
        if source and not source.startswith("."):
            yield from (f"{source}.{word}" for name in names.split(",") for word in name.split()[:1])


def _relative(text: str) -> Iterator[str]:
    """The last parts of the modules that a text imports relatively, or may."""
    for source, names, _ in _IMPORT.findall(text):
        if source.startswith("."):
            yield source.rpartition(".")[2]
            yield from (word for each in names.split(",") for word in each.split()[:1])


def _place(project: _Files, roots: Mapping[str, str], name: str, text: str, package: str) -> Place:
    own = posixpath.dirname(name)
    if any(source.startswith(".") for source, _, _ in _IMPORT.findall(text)):
        top, dots = own, "."
        while top and project.is_package(top) and project.is_package(posixpath.dirname(top)):
            top, dots = posixpath.dirname(top), f"{dots}."
        return Place(top, f"from {dots} import {package}")
    root = roots.get(name)
    if root is None:
        root = _root(project, name, text)
    inside = own[len(root) :].strip("/")
    first = inside.partition("/")[0]
    if not first.isidentifier():
        return Place(own, f"import {package}")
    return Place(posixpath.join(root, first), f"from {first} import {package}")


def _root(project: _Files, name: str, text: str) -> str:
    """The folder from which a file is found that nobody imports by an absolute name."""
    own = posixpath.dirname(name)
    if not own or not project.is_package(own):
        return own
    top = own
    while project.is_package(posixpath.dirname(top)) and posixpath.dirname(top):
        top = posixpath.dirname(top)
    outside = posixpath.dirname(top)
    if _STARTED.search(text):  # it is started: does it ask for its own package, or for what lies beside it?
        found = (project.find(name, module) for module in _absolute(text))
        asked = [root for each in found if each is not None for root in each[1:]]
        return outside if outside in asked or (not asked and top in project.libraries) else own
    return outside
