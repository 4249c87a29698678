"""A launcher target is a function that takes what to start and gives the files that start it.

The run script, ModelArts' boot file and Kubernetes' manifests are targets; each is a module of this package
with its templates in ``reports/launcher``, and a file in ``migrator/cli`` with its options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from migrator.api_support.versions import TorchVersion, in_range
from migrator.data_folders import data_folder, reports_yaml
from migrator.project.start_ways import StartWay


@dataclass(frozen=True)
class Start:
    """What to start: ``entry``, a script below the project's folder.

    Where it imports relatively it is started as ``module`` of its package, from the folder ``module_root``
    above that. ``ways``: how the ranks of the project's scripts come to be, as far as it is known.
    ``variables``, as ``variables.yaml`` has them, are set where the user has not set them.
    """

    entry: str
    module: str = ""
    module_root: str = ""
    ways: Mapping[str, StartWay] = field(default_factory=dict)
    variables: tuple[Mapping[str, str], ...] = ()

    @property
    def way(self) -> StartWay | None:
        """How the ranks of ``entry`` come to be."""
        return self.ways.get(self.entry)


class Launch(NamedTuple):
    """What starts it: ``files`` by their paths below the folder that they are for, and lines for a person."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of a target with one file."""
        (text,) = self.files.values()
        return text


def start_of(
    entry: str,
    relative_imports: bool,
    exists: Callable[[str], bool],
    ways: Mapping[str, StartWay],
    version: TorchVersion | None = None,
) -> Start:
    """What starts a script; ``exists`` tells which ``__init__.py`` there are."""
    module, root = _module_of(entry, exists) if relative_imports else ("", "")
    return Start(entry, module, root, ways, tuple(variables(version)))


def variables(version: TorchVersion | None = None) -> list[dict[str, str]]:
    """The variables of ``variables.yaml`` for a torch version; without one, those for every version."""
    listed: list[dict[str, str]] = reports_yaml("launcher/variables.yaml")
    if version is None:
        return [variable for variable in listed if "versions" not in variable]
    return [variable for variable in listed if in_range(variable.get("versions", ""), version.tuple)]


def _module_of(entry: str, exists: Callable[[str], bool]) -> tuple[str, str]:
    """The name under which Python finds a package's file, and the folder above the package.

    Two empty strings where the file lies in no package, or its path cannot be a name.
    """
    path = PurePosixPath(entry)
    folder = path.parent
    while folder.name and exists(str(folder / "__init__.py")):
        folder = folder.parent
    parts = path.with_suffix("").relative_to(folder).parts
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        return "", ""
    return ".".join(parts), str(folder)


def template(name: str) -> str:
    """The text of a file in ``reports/launcher``."""
    return (data_folder("reports") / "launcher" / name).read_text(encoding="utf-8")


def filled(name: str, values: Mapping[str, str]) -> str:
    """The text of a template with values, already quoted for its language, in the places of its marks.

    All are put in at once: what a value holds is never taken for a mark.
    """
    marks = re.compile("|".join(map(re.escape, values)))
    return marks.sub(lambda mark: values[mark.group()], template(name))
