"""Where a bundled package lies in a project's result, and how each file imports it.

A script finds what lies beside it; a file of a package is asked for by the name that others give to it. Which
of the two a file is, the imports of the project's files show, as they are written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from migrator.project.module_names import Read, folders_around
from migrator.project.program_files import imports_of

_STARTED = re.compile(r"^if\s+__name__\s*==", re.M)
_DOES = re.compile(r"^[ \t]*(?:from|import|def|class|if|for|while|with|try|async|print)\b", re.M)
# The imports of a file: modules, and names in them.
_Imports = Sequence[tuple[str, str]]


class Place(NamedTuple):
    """Where something bundled lies for a file, and ``home``: where the file imports it from.

    ``folder`` is empty for the project's own. ``home`` is a package, dots, or empty for a module beside what
    is started; None for settings that no file imports: what reads them may take no import.
    """

    folder: str
    home: Optional[str] = ""

    def statement(self, name: str) -> str:
        """The import of ``name`` for the file; empty where it takes none."""
        if self.home is None:
            return ""
        return f"from {self.home} import {name}" if self.home else f"import {name}"

    def module(self, name: str) -> str:
        """The full name of ``name``, as the file's imports have it."""
        home = self.home or ""
        return f"{home}.{name}" if home.strip(".") else f"{home}{name}"


def places(files: Iterable[str], read: Read) -> Mapping[str, Place]:
    """The place for each of the Python files; ``read`` gives their texts."""
    every = list(files)
    texts = {name: text for name in every if (text := read(name)) is not None}
    imports = {name: imports_of(text) for name, text in texts.items()}
    project = _Files(frozenset(texts), frozenset(filter(None, map(_library, texts, imports.values()))))
    roots: dict[str, str] = {}
    imported: set[str] = set()  # last parts of what is imported relatively
    for name, own in imports.items():
        imported.update(
            last for module, each in own if module[0] == "." for last in (module.rpartition(".")[2], each)
        )
        for module in _absolute(own):
            found = project.find(name, module)
            if found is not None:
                roots.setdefault(found[0], found[1])
    found_places = {}
    for name in every:
        place = _place(project, roots, name, texts.get(name, ""), imports.get(name, ()))
        plain = name in texts and name not in roots and not _DOES.search(texts[name])
        if plain and posixpath.basename(name)[: -len(".py")] not in (*imported, "__init__"):
            place = place._replace(home=None)
        found_places[name] = place
    return found_places


def _library(name: str, imports: _Imports) -> str:
    """The folder of a package whose ``__init__.py`` imports modules of its own; empty for another file."""
    folder, _, file = name.rpartition("/")
    own = ("", posixpath.basename(folder))
    imports_own = any(module.partition(".")[0] in own for module, _ in imports)
    return folder if file == "__init__.py" and imports_own else ""


class _Files:
    """The files of a project, the folders that hold some, and those that are surely packages."""

    def __init__(self, names: frozenset[str], libraries: frozenset[str]) -> None:
        self.names = names
        self.libraries = libraries
        self.folders = {folder for name in names for folder in folders_around(name)}
        self.firsts = {posixpath.basename(each.removesuffix(".py")) for each in (*self.folders, *names)}

    def is_package(self, folder: str) -> bool:
        return posixpath.join(folder, "__init__.py") in self.names

    def find(self, importer: str, module: str) -> tuple[str, str] | None:
        """The file that a module is to a file, and the folder from which Python looks for it."""
        first, _, rest = module.partition(".")
        folders = folders_around(importer) if first in self.firsts else []  # most are of other projects
        if folders and self.is_package(folders[0]):
            folders = [*folders[1:], folders[0]]  # in a package, siblings come last
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


def _absolute(imports: _Imports) -> Iterator[str]:
    """The modules that imports name absolutely, with what they take from them: it may be modules."""
    for module, name in imports:
        if module[0] != ".":
            yield from (module, f"{module}.{name}") if name else (module,)


def _place(project: _Files, roots: Mapping[str, str], name: str, text: str, imports: _Imports) -> Place:
    own = posixpath.dirname(name)
    if any(module[0] == "." for module, _ in imports):
        top, dots = own, "."
        while top and project.is_package(top) and project.is_package(posixpath.dirname(top)):
            top, dots = posixpath.dirname(top), f"{dots}."
        return Place(top, dots)
    root = roots.get(name)
    if root is None:
        root = _root(project, name, text, imports)
    first = own[len(root) :].strip("/").partition("/")[0]
    return Place(posixpath.join(root, first), first) if first.isidentifier() else Place(own)


def _root(project: _Files, name: str, text: str, imports: _Imports) -> str:
    """The folder from which a file is found that nobody imports by an absolute name."""
    own = top = posixpath.dirname(name)
    if not own or not project.is_package(own):
        return own
    while project.is_package(posixpath.dirname(top)) and posixpath.dirname(top):
        top = posixpath.dirname(top)
    outside = posixpath.dirname(top)
    if _STARTED.search(text):  # it is started: does it ask for its own package, or for what lies beside it?
        asked = [found for module in _absolute(imports) if (found := project.find(name, module))]
        of_own = any(root == outside and file.startswith(f"{top}/") for file, root in asked)
        return outside if of_own or (not asked and top in project.libraries) else own
    return outside
