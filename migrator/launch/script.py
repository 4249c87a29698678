"""``run_distributed_npu.sh``, the launcher of a migrated project: its template is in ``reports/launcher``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import PurePosixPath

import yaml

from migrator.api_support.versions import TorchVersion
from migrator.data_folders import data_folder
from migrator.matchers.packs import in_range

NAME = "run_distributed_npu.sh"


def launcher(
    entry: str,
    relative_imports: bool,
    distributed: bool,
    version: TorchVersion,
    exists: Callable[[str], bool],
) -> str:
    """The script that starts ``entry``, a path below the folder where the script will lie.

    A file that imports relatively is started as a module of its package; ``exists`` tells
    which ``__init__.py`` there are.
    """
    module, root = module_of(entry, exists) if relative_imports else ("", "")
    template = (data_folder("reports") / "launcher" / NAME).read_text(encoding="utf-8")
    for mark, text in (
        ("@ENTRY@", shlex.quote(entry)),
        ("@MODULE@", shlex.quote(module)),
        ("@MODULE_ROOT@", shlex.quote(root)),
        ("@RANKS@", "" if distributed else "1"),
        ("@VARIABLES@", _variables(version)),
    ):
        template = template.replace(mark, text)
    return template


def module_of(entry: str, exists: Callable[[str], bool]) -> tuple[str, str]:
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


def variables(version: TorchVersion | None = None) -> list[dict[str, str]]:
    """The variables of ``variables.yaml`` for a torch version; without one, those for every version."""
    text = (data_folder("reports") / "launcher" / "variables.yaml").read_text(encoding="utf-8")
    listed: list[dict[str, str]] = yaml.safe_load(text)
    if version is None:
        return [variable for variable in listed if "versions" not in variable]
    return [variable for variable in listed if in_range(variable.get("versions", ""), version.tuple)]


def _variables(version: TorchVersion) -> str:
    lines = []
    for variable in variables(version):
        lines += [f"# {variable['why']}", f"set_default {variable['name']} {shlex.quote(variable['value'])}"]
    return "\n".join(lines) + "\n"
