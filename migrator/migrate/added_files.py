"""What a result gets beside the project's files, the package of equivalents and bundled modules, and what it
needs no longer: CUDA operators that it does not call on NPUs.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from migrator.core.keep_cuda import NAME
from migrator.core.rules import Rules
from migrator.data_folders import data_folder
from migrator.files.errors import CannotWrite
from migrator.files.naming import EQUIVALENTS, MADE, is_equivalents, is_made
from migrator.files.output import OutputTree, add
from migrator.findings.finding import Finding, Result
from migrator.language import N_, _
from migrator.matchers.packs import Rule
from migrator.matchers.structural.added_imports import ModuleOptions, is_added
from migrator.project.added_package import Place
from migrator.project.module_names import Read
from migrator.project.operators import Catalog, builds
from migrator.project.project import Project

_CALLS_OF_OURS, _OWN_MODULE = ("equivalent-function", "operator-function"), "own-module"
_INSIDE = re.compile(r"^from \.(\w+) import ", re.M)
_WITH_ACCELERATOR = (2, 6)
_OF_RANKS = "from ranks import join_ranks"


class Module(NamedTuple):
    """A bundled module: its name, the mark of its text, its folder in reports/, the files that need it."""

    name: str
    mark: str
    folder: str
    wanted_by: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.py"


def modules(rules: Rules) -> list[Module]:
    """All that a result may get: those of rules, and the one by which --keep-cuda finds what differs."""
    found = [Module(rule.options.module, MADE, "modules", rule.code) for rule in _module_rules(rules)]
    return [*found, Module(NAME, "npumigrate --keep-cuda", "keep_cuda", "--keep-cuda")]


def _module_rules(rules: Rules) -> Iterator[Rule[ModuleOptions]]:
    return (rule for rule in rules.every.values() if rule.kind == _OWN_MODULE)


class Wanted:
    """What the result gets because files import it: noted file by file, then written."""

    def __init__(self, project: Project, rules: Rules) -> None:
        self._project, self._rules, self._every = project, rules, modules(rules)
        self._modules: dict[Module, set[str]] = {}  # with the folders in which copies lie
        self._functions: dict[str, set[str]] = {}  # of the package, by the folder in which a copy lies

    def note(self, file: str, data: bytes, result: Result) -> None:
        """Note what a file of the project imports, by its new data and the fixes in it."""
        place = self._project.places.get(file)
        if place is None:
            return
        for module in self._every:
            if module.name in self._project.added and module.name.encode() in data:
                self._modules.setdefault(module, set()).add(place.folder)
        for finding in result.findings:
            if finding.fixed and self._rules.every[finding.code].kind in _CALLS_OF_OURS:
                package = self._project.added[EQUIVALENTS]
                called = re.findall(rf"\b{package}\.(\w+)", data.decode("utf-8", "replace"))
                self._functions.setdefault(os.path.join(place.folder, package), set()).update(called)
                break

    def written_to(self, tree: OutputTree) -> list[str]:
        """Write it all; gives the names of the package's files. What an earlier migration wrote there stays.

        Raises CannotWrite, also where the project has another file of a module's name.
        """
        written = []
        for place, functions in sorted(self._functions.items()):
            folder = os.path.join(tree.building, place)
            names = os.listdir(folder) if os.path.isdir(folder) else []
            there = [name[:-3] for name in names if name.endswith(".py") and not name.startswith("_")]
            for name, text in sources([*there, *functions]).items():
                written.append(f"{place}/{name}.py".replace(os.sep, "/"))
                add(tree, written[-1], text.encode("utf-8"), replace=True)
        for module, folders in self._modules.items():
            older = module.name == NAME and self._rules.version.tuple < _WITH_ACCELERATOR
            source = f"{NAME}_before_2_6.py" if older else module.file
            data = _source(module.folder, source).encode("utf-8")
            for name in sorted(posixpath.join(folder, module.file) for folder in folders):
                there_is = tree.building / name
                if there_is.is_file() and not is_made(there_is, module.file, module.mark):
                    said = N_("rename {name}: it belongs to the project, and {who} needs the name")
                    raise CannotWrite(said, name=name, who=module.wanted_by)
                add(tree, name, data, replace=True)
        return written


def _source(folder: str, file: str) -> str:
    """The text of a module. One that imports from ranks.py gets what that has, as it stands by itself."""
    text = (data_folder("reports") / folder / file).read_text("utf-8")
    if _OF_RANKS in text:
        ranks = (data_folder("reports") / "distributed" / "ranks.py").read_text("utf-8")
        _about, imports, functions = ranks.split("\n\n", 2)
        new = [line for line in imports.splitlines() if f"\n{line}\n" not in text]
        text = text.replace(_OF_RANKS, "\n".join(new)) + f"\n{functions}"
    return text


def modules_for(rules: Rules, project: Project, files: Iterable[str], read: Read) -> Iterator[str]:
    """The modules that rules add to the result of a project, by what its files and its requirements say."""
    every = [*files]
    for rule in _module_rules(rules):
        patched = rules.settings.transfer and rule.transfer
        if rule.code in rules.enabled and not patched:
            if is_added(rule, project, rules.version.tuple, every, read):
                yield rule.options.module


def name_of_package(source: Path, where: Mapping[str, Place]) -> str:
    """The name of the package: one that nothing of the user's has where the package lies for a file."""
    name, number = EQUIVALENTS, 1
    while True:
        folders = {os.path.join(source, place.folder, name) for place in where.values()}
        foreign = (folder for folder in folders if os.path.lexists(folder) and not is_equivalents(folder))
        if not any(foreign) and not any(os.path.lexists(f"{folder}.py") for folder in folders):
            return name
        number += 1
        name = f"{EQUIVALENTS}_{number}"


def sources(functions: Iterable[str]) -> dict[str, str]:
    """The files of a package with these functions, by their names, and with what they import of others."""
    source, texts, waiting = data_folder("reports") / EQUIVALENTS, dict[str, str](), [*functions]
    while waiting:
        name = waiting.pop()
        file = source / f"{name}.py"
        if name not in texts and file.is_file():
            texts[name] = file.read_text("utf-8")
            waiting += _INSIDE.findall(texts[name])
    shown = sorted(name for name in texts if not name.startswith("_"))
    imports = "".join(f"from .{name} import {name}\n" for name in shown)
    exported = "".join(f'    "{name}",\n' for name in shown)
    about = f'"""{MADE}: equivalents of APIs that NPUs do not support."""'
    texts["__init__"] = f"{about}\n\n# npumigrate: skip-file\n\n{imports}\n__all__ = [\n{exported}]\n"
    return dict(sorted(texts.items()))


_BUILT, _DEFINED, _USED = "NPU651", "NPU652", "NPU653"
_REPLACES = ("operator-function", "operator-form", "cuda-way")


def settled(
    results: Iterable[tuple[Result, bool]], operators: Catalog, rules: Rules
) -> Iterator[tuple[Result, bool]]:
    """Results and whether their files changed, where an extension without any use left is only an info.

    In a project with extensions the first comes after the last was read.
    """
    if not operators.modules or _USED not in rules.enabled:
        yield from results
        return
    every = [*results]
    replaced, used = set[str](), set[str]()
    for finding in (each for result, _changed in every for each in result.findings):
        if finding.code == _USED:  # an info where NPUs take another way
            (used if finding.severity != "info" else replaced).update(finding.api.split("."))
        elif finding.fixed and rules.every[finding.code].kind in _REPLACES:
            replaced.add(finding.api)
    gone, none_left = replaced - used, bool(replaced) and not used

    def less(finding: Finding, file: str) -> Finding:
        if finding.code not in (_BUILT, _DEFINED):
            return finding
        known = operators.extensions
        sources = (each for each in known.values() if builds(each, file))
        extensions = sources if finding.code == _DEFINED else filter(None, [known.get((file, finding.line))])
        names = {each.short for each in extensions}
        if not (none_left or (names and names <= gone)):
            return finding
        message = _("{message}; the project does not call it on NPUs", message=finding.message)
        return finding._replace(severity="info", message=message)

    for result, changed in every:
        yield result._replace(findings=tuple(less(each, result.name) for each in result.findings)), changed
