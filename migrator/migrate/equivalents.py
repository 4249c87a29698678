"""The package of equivalents in a result: the files of the functions that its code calls, and no others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from migrator.data_folders import data_folder
from migrator.files.naming import EQUIVALENTS, MADE, is_equivalents
from migrator.files.output import OutputTree, add
from migrator.findings.finding import Result
from migrator.matchers.packs import Rule
from migrator.matchers.structural.equivalent_functions import function_of
from migrator.project.added_package import Place, places
from migrator.project.imports import Read

_HANDLER = "equivalent-function"
_INSIDE = re.compile(r"^from \.(\w+) import ", re.M)


def places_of(source: Path, files: Iterable[str], read: Read) -> Mapping[str, Place]:
    """Where the package lies for each of the files, under a name that nothing of the user's has."""
    every, number = list(files), 1
    while True:
        package = EQUIVALENTS if number == 1 else f"{EQUIVALENTS}_{number}"
        found = places(every, read, package)
        folders = {os.path.join(source, place.folder, package) for place in found.values()}
        foreign = (folder for folder in folders if os.path.lexists(folder) and not is_equivalents(folder))
        if not any(foreign) and not any(os.path.lexists(f"{folder}.py") for folder in folders):
            return found
        number += 1


def functions_called(result: Result, file: str, rules: Mapping[str, Rule]) -> list[tuple[str, str]]:
    """The functions that the fixes in a file call, each with the file's name in the project."""
    called = []
    for finding in result.findings:
        rule = rules.get(finding.code)
        if finding.fixed and rule is not None and rule.handler == _HANDLER and finding.api != EQUIVALENTS:
            called.append((file, function_of(rule, finding.api)))
    return called


def add_equivalents(
    tree: OutputTree, where: Mapping[str, Place], called: Iterable[tuple[str, str]]
) -> list[str]:
    """Write the package to where files look for it, with the functions that they call; gives the names.

    What an earlier migration wrote there stays. Raises CannotWrite.
    """
    wanted: dict[str, set[str]] = {}
    for file, function in called:
        folder, statement = where[file]
        wanted.setdefault(os.path.join(folder, statement.rpartition(" ")[2]), set()).add(function)
    written = []
    for place, functions in sorted(wanted.items()):
        there = _functions_in(os.path.join(tree.building, place))
        for name, text in sources([*there, *functions]).items():
            written.append(f"{place}/{name}.py".replace(os.sep, "/"))
            add(tree, written[-1], text.encode("utf-8"), replace=True)
    return written


def _functions_in(folder: str) -> list[str]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [name[:-3] for name in names if name.endswith(".py") and not name.startswith("_")]


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
    about = f'"""{MADE}: what stands for APIs that NPUs lack, from operators that they have."""'
    texts["__init__"] = f"{about}\n\n# npumigrate: skip-file\n\n{imports}\n__all__ = [\n{exported}]\n"
    return dict(sorted(texts.items()))
