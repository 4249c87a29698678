"""What the names of a project's files say, and which of them a file imports.

Under which name Python finds each, packages, twins for NPUs.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

SOURCE_FOLDER = "src"
_NPU = ("npu", "ascend")
_FOR_NPUS = {
    **dict.fromkeys("cuda gpu rocm hip amd xpu mlu musa cpu hpu mps tpu".split(), _NPU),
    **dict.fromkeys(("nccl", "rccl"), ("hccl",)),
}
_FOR_OTHERS = re.compile(rf"(?<![a-z])({'|'.join(_FOR_NPUS)})(?![a-z])", re.IGNORECASE)


def module_name(file: str, package: str = "") -> str:
    """``src/acme/ops/nms.py`` is ``acme.ops.nms``; ``package`` stands before it where the folder is one."""
    parts = file.rpartition(".")[0].split("/")
    if parts[-1] == "__init__":
        parts = parts[:-1]
    if parts[:1] == [SOURCE_FOLDER] and len(parts) > 1:
        parts = parts[1:]
    return ".".join([package, *parts] if package else parts)


def folders_around(file: str) -> list[str]:
    """The folders around a file, the innermost first, and the project's, which is empty."""
    folders = file.split("/")[:-1]
    return ["/".join(folders[:depth]) for depth in range(len(folders), -1, -1)]


def absolute_name(name: str, file: str, package: str = "") -> str:
    """A relative name (``..ops.nms``) made absolute by the place of the file that says it; others stay."""
    if not name.startswith("."):
        return name
    level = len(name) - len(name.lstrip("."))
    parents = [part for part in module_name(file, package).split(".") if part]
    if not file.endswith("__init__.py"):
        parents = parents[:-1]
    parents = parents[: len(parents) - level + 1]
    return ".".join([*parents, name[level:]]).strip(".")


def npu_twins(files: Iterable[str]) -> frozenset[str]:
    """Those of the files beside which there is one, or a folder, whose name differs in the device only.

    A program with ``cuda_accelerator.py`` and ``npu_accelerator.py`` chooses one of them. Where the one for
    CUDA is changed, two are for NPUs, and the wrong one is chosen: its name, and what is keyed by it, still
    say CUDA. So it is with a file for another maker's devices, which torch may also call CUDA, as with ROCm.
    """
    names = frozenset(files)
    every = names | {folder for name in names for folder in folders_around(name)}
    return frozenset(name for name in names if any(twin in every for twin in _for_npus(name)))


def _for_npus(name: str) -> Iterable[str]:
    """What the file for NPUs, or its folder, may be called: one of them is named after the device."""
    for match in _FOR_OTHERS.finditer(name):
        for word in _FOR_NPUS[match.group().lower()]:
            yield name[: match.start()] + word + name[match.end() :]
            if "/" in (behind := name[match.end() :]):
                yield name[: match.start()] + word + behind.partition("/")[0]


def packages_of(files: Iterable[str]) -> frozenset[str]:
    """The folders of the packages that lie in no other one, of files with these names.

    With them the modules in folders that are no packages, without their ending, and with it those of inner
    packages: who has the folder around such a package on the path imports them by its name.
    """
    python = [file for file in files if file.endswith(".py")]
    folders = {file.rpartition("/")[0] for file in python if file.rpartition("/")[2] == "__init__.py"}
    outermost = {folder for folder in folders if folder and folder.rpartition("/")[0] not in folders - {""}}
    inner = {file for file in python if file.rpartition("/")[0] in folders - outermost}
    alone = {file[:-3] for file in python if file.rpartition("/")[0] not in folders}
    return frozenset(outermost | inner | alone)


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
        base = posixpath.normpath(posixpath.join(folder, *parts))
        inner = f"{base}/" if base != "." else ""
        places = (
            [(f"{inner}{attribute}.py", ""), (f"{inner}{attribute}/__init__.py", "")] if attribute else []
        )
        places += [(f"{base}.py", attribute), (f"{inner}__init__.py", attribute)] if parts else []
        for name, inside in places:
            if read(name) is not None:
                return name, inside
    return None
