"""Derive api_db/library_defaults.csv from wheels and sdists: ``python tools/library_defaults.py FOLDER``.

``api_db/by_hand/library_defaults.csv`` says which functions to look for, what shows that one goes to CUDA by
itself (``evidence``, a regular expression for its module; without one the default of ``argument``), and what
to do. Here the releases in the folder are asked: under which names they offer it, where the argument stands,
and which of them do so. Rows about libraries without a release in the folder stay as they are.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tools.releases import check, writing

_RELEASE = re.compile(r"([\w.-]+?)-(\d+(?:\.\d+)*)[\w.]*(?:-py[\d.py]+-none-any\.whl|\.tar\.gz)")
_CUDA = re.compile(r"""(?:torch\.device\()?['"]cuda(?::0)?['"]\)?""")
_ASKED = re.compile(r"""['"]cuda(?::0)?['"] if [\w.]+\.is_available\(\)""")

_BY_NAME = ast.parse("def function(**given): ...").body[0].args  # type: ignore[attr-defined]


class Release(NamedTuple):
    """The texts of a release's modules, by their dotted names, and which of them are packages."""

    version: str
    modules: Mapping[str, str]
    packages: frozenset[str]


class Seen(NamedTuple):
    """What a release shows of a function; without ``names`` it does not go to CUDA there."""

    names: tuple[str, ...] = ()
    position: str = ""


class Signature(NamedTuple):
    """What a function takes: its module, its arguments, how many of them are bound (``self``), its text."""

    module: str
    arguments: ast.arguments
    bound: int
    source: str
    of_class: bool


def main(folder: Path) -> int:
    """Write the table, and say what is wrong then; 1 where something is."""
    api_db = data_folder("api_db")
    releases = _releases(folder)
    known = {(row["api"], row["argument"]): row for row in writing.records("library_defaults", api_db)}
    found = []
    for row in writing.records("by_hand/library_defaults", api_db):
        derived = _derived(row, releases)
        if derived is None:
            derived = known.get((row["api"], row["argument"]))
        if derived is None:
            print(f"{row['api']} {row['argument']}: no release in the folder shows it")
        else:
            found.append({**row, **derived})
    columns = writing.COLUMNS["library_defaults"].split()
    with open(api_db / "library_defaults.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(sorted([row[column] for column in columns] for row in found))
    problems = check.problems(api_db)
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def _derived(row: Mapping[str, str], releases: Mapping[str, list[Release]]) -> Optional[dict[str, str]]:
    """The columns that the releases tell; None where none of them shows it."""
    every = [release for name in row["library"].split() for release in releases.get(_plain(name), ())]
    shown = [(release.version, told) for release in every if (told := _shown(row, release)) is not None]
    seen = [(version, told) for version, told in shown if told.names]
    if not seen:
        return None
    first, last = seen[0][0], seen[-1][0]
    positions = [int(told.position) for _, told in seen if told.position]  # releases put parameters between
    looked_at = ", ".join(dict.fromkeys(release.version for release in every))
    return {
        "names": " ".join(dict.fromkeys(name for _, told in seen for name in told.names)),
        "since": first if first != shown[0][0] else "",
        "until": last if last != shown[-1][0] else "",
        "position": str(min(positions, default="")),
        "source": f"{row['library'].split()[0]} {looked_at}",
    }


def _shown(row: Mapping[str, str], release: Release) -> Optional[Seen]:
    """What a release shows of a row's function; None where it has none."""
    path: list[str] = []
    module = row["api"]
    while module and module not in release.modules:
        module, _, last = module.rpartition(".")
        path.insert(0, last)
    told = _signature(release, module, path, row["argument"])
    if told is None:
        return None
    names = [each.arg for each in told.arguments.posonlyargs + told.arguments.args][told.bound :]
    position = names.index(row["argument"]) if row["argument"] in names else None
    by_name = any(each.arg == row["argument"] for each in told.arguments.kwonlyargs)
    taken = not row["argument"] or position is not None or by_name or told.arguments.kwarg is not None
    evidence, text = row["evidence"], release.modules[told.module]
    fits = re.search(evidence, text) is not None if evidence else _by_default(row, told)
    if not fits or not taken:
        return Seen()
    return Seen(_names(release, module, path, told), "" if position is None else str(position))


def _signature(release: Release, module: str, path: list[str], argument: str) -> Optional[Signature]:
    """Of the function at a path of a module, of a class its ``__init__``, its own or an inherited one."""
    outer: Optional[ast.AST] = ast.parse(release.modules.get(module, ""))
    for place, name in enumerate(path):
        inner = _member(outer, name)
        if inner is None and isinstance(outer, ast.ClassDef):
            fields = [each.target for each in outer.body if isinstance(each, ast.AnnAssign)]
            if any(isinstance(field, ast.Name) and field.id == argument for field in fields):
                return Signature(module, _BY_NAME, 0, "", False)  # a dataclass: bases decide about the place
            return _inherited(release, module, outer, path[place:], argument)
        outer = inner
    if isinstance(outer, ast.ClassDef):
        return _signature(release, module, [*path, "__init__"], argument)
    if not isinstance(outer, ast.FunctionDef):
        return None
    of_class = any(ast.unparse(each) == "classmethod" for each in outer.decorator_list)
    return Signature(module, outer.args, int(len(path) > 1), ast.unparse(outer), of_class)


def _member(tree: Optional[ast.AST], name: str) -> Optional[ast.AST]:
    inside = ast.iter_child_nodes(tree) if tree is not None else iter(())
    return next((each for each in inside if getattr(each, "name", "") == name), None)


def _inherited(
    release: Release, module: str, derived: ast.ClassDef, path: list[str], argument: str
) -> Optional[Signature]:
    """What the first of a class's bases that the release has, has at a path."""
    tree = ast.parse(release.modules[module])
    for base in (each.id for each in derived.bases if isinstance(each, ast.Name)):
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level)
        origins = (node.module for node in imports if any(alias.name == base for alias in node.names))
        told = _signature(release, next(origins, None) or module, [base, *path], argument)
        if told is not None:
            return told
    return None


def _by_default(row: Mapping[str, str], told: Signature) -> bool:
    """Whether the argument's default is CUDA, or, for the outcome ``cpu``, CUDA where there is one."""
    spec = told.arguments
    every = spec.posonlyargs + spec.args
    defaults = {item.arg: value for item, value in zip(every[::-1], spec.defaults[::-1])}
    defaults |= {item.arg: value for item, value in zip(spec.kwonlyargs, spec.kw_defaults) if value}
    if row["argument"] not in defaults:
        return False
    default = ast.unparse(defaults[row["argument"]])
    if row["outcome"] != "cpu":
        return _CUDA.fullmatch(default) is not None
    return bool(_ASKED.search(default) or (default == "None" and _ASKED.search(told.source)))


def _names(release: Release, module: str, path: list[str], told: Signature) -> tuple[str, ...]:
    """The names under which a release offers something; of a method its own with a dot."""
    if len(path) > 1 and not told.of_class:
        return (f".{path[-1]}",)
    name, *members = path
    offering = {module}
    while True:
        more = {
            package
            for package in release.packages - offering
            if any(_offers(package, release.modules[package], each, name) for each in offering)
        }
        if not more:
            return tuple(".".join([each, name, *members]) for each in sorted(offering))
        offering |= more


def _offers(package: str, text: str, module: str, name: str) -> bool:
    """Whether a package's own module imports a name from another module, or does so when it is asked for.

    Then a dictionary has it: ``{"name": ("module", "name")}``, or ``{"submodule": ["name"]}``.
    """
    for node in ast.walk(ast.parse(text)):
        for key, value in zip(node.keys, node.values) if isinstance(node, ast.Dict) else ():
            texts = {each.value for each in ast.walk(value) if isinstance(each, ast.Constant)}
            written = getattr(key, "value", None)
            if (written == name and module in texts) or (f"{package}.{written}" == module and name in texts):
                return True
        if isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*outer, *([node.module] if node.module else [])])
            if origin == module and any(alias.name in (name, "*") for alias in node.names):
                return True
    return False


def _releases(folder: Path) -> dict[str, list[Release]]:
    """The releases in a folder by the names of their libraries, the oldest first."""
    found: dict[str, list[Release]] = {}
    for path in sorted(folder.rglob("*")):
        match = _RELEASE.fullmatch(path.name)
        if match:
            files = dict(_texts(path))
            modules = {_module(name): text for name, text in files.items()}
            packages = frozenset(_module(name) for name in files if name.endswith("/__init__.py"))
            found.setdefault(_plain(match[1]), []).append(Release(match[2], modules, packages))
    for each in found.values():
        each.sort(key=lambda release: tables.as_tuple(release.version))
    return found


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The Python files of a wheel or an sdist, by their paths as they are installed."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield name, wheel.read(name).decode("utf-8", "replace")
        return
    with tarfile.open(path) as sdist:
        for member in sdist:
            file = sdist.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                inside = member.name.partition("/")[2].removeprefix("src/")
                yield inside, file.read().decode("utf-8", "replace")


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(str(__doc__))
    sys.exit(main(Path(sys.argv[1])))
