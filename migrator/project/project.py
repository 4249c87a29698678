"""What one file has to know of the others: classes with CUDA-like members, and CUDA operators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.names.tree import parse, walk
from migrator.project.extensions import Extension, may_build, scan_extensions
from migrator.project.operators import Catalog

if TYPE_CHECKING:
    from migrator.files.discover import Entry
    from migrator.native.functions import NativeFile
    from migrator.project.definitions import Definitions
    from migrator.project.library_functions import LibraryFunction

_MEMBERS = ("cuda", "is_cuda")
# Where a project may keep its packages.
_SOURCE_FOLDERS = ("src", "python", "lib")
# From a plain beginning a search is many times as fast as from a choice of them.
_MAY_DEFINE = re.compile(
    r"cuda\b(?:(?<=def[ \t]cuda)|(?<=def[ \t]is_cuda)"
    r"|(?:(?<=[.\s]cuda)|(?<=[.\s]is_cuda))\s*(?:=[^=]|:))"
)
# What in a class's body shows that its ``cuda`` moves tensors.
_MOVES_TENSORS = re.compile(r"\.(?:cuda|npu|to|is_cuda|is_npu)\b|\btorch\b")
_MODULE_BASES = re.compile(
    r"(?:Module|ModuleList|Sequential|Tensor|Variable|Function|Optimizer|Parameter|Storage|Parallel|DDP|FSDP)$"
)
_PLAIN_BASES = frozenset(
    {"object", "Enum", "IntEnum", "str", "int", "NamedTuple", "ABC", "abc.ABC", "enum.Enum"}
)


@dataclass(frozen=True)
class ClassFacts:
    """A class of the project that defines, or stores, a member with a CUDA name."""

    file: str
    name: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    stored: frozenset[str]
    moves_tensors: bool


@dataclass(frozen=True)
class FileFacts:
    """What one Python file tells the others."""

    classes: tuple[ClassFacts, ...] = ()
    extensions: tuple[Extension, ...] = ()


@dataclass(frozen=True)
class Project:
    """What matters to more than one file: classes, CUDA operators, and libraries that were judged.

    ``packages`` are the folders of the packages that lie in no other package. ``definitions`` finds what a
    name means in other files; without it nobody looks there.
    """

    classes: tuple[ClassFacts, ...] = ()
    operators: Catalog = field(default_factory=Catalog)
    libraries: Mapping[str, LibraryFunction] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    definitions: Definitions | None = None

    def words(self, source: str) -> frozenset[str]:
        """The words from which the rules start that look for what only this project knows."""
        if source == "cuda_operators":
            return self.operators.words()
        return frozenset(name.rpartition(".")[2] for name in self.libraries)

    def line_words(self, source: str) -> frozenset[str]:
        """The words beside these that the lines hold at which such a rule looks, once it has started."""
        return self.operators.function_names() if source == "cuda_operators" else frozenset()

    def owns(self, package: str, file: str) -> bool:
        """Whether a file means a package of this project: it, or a folder around it, lies beside the package.

        That of ``third_party/apex/apex`` is meant there, and not by the rest of the project.
        """
        folders = file.split("/")[:-1]
        if package in folders and folders.index(package) == (folders[0] in _SOURCE_FOLDERS):
            return True  # it lies in the package itself, of which nothing else may be known
        around = ["/".join(folders[:depth]) for depth in range(len(folders) + 1)]
        places = ((folder, inner, package) for folder in around for inner in ("", *_SOURCE_FOLDERS))
        return any("/".join(filter(None, place)) in self.packages for place in places)

    def related(self, facts: ClassFacts) -> bool:
        """Whether a class's ``cuda`` is about tensors: by its bases, or by what it does."""
        return facts.moves_tensors or any(_MODULE_BASES.search(base) for base in facts.bases)

    def unrelated_method(self, member: str, text: str, file: str) -> ClassFacts | None:
        """A class whose ``member`` has nothing to do with torch and that a file may mean.

        Only a class without bases, or with plain ones, is surely no module; and
        a file can only mean one that it defines or names.
        """
        for facts in self.classes:
            if member in facts.methods and not self.related(facts) and set(facts.bases) <= _PLAIN_BASES:
                if facts.file == file or facts.name in text:
                    return facts
        return None

    def defines_elsewhere(self, member: str) -> bool:
        """Whether some class defines a method of that name that has nothing to do with torch."""
        return any(member in facts.methods and not self.related(facts) for facts in self.classes)

    def stores(self, member: str) -> bool:
        """Whether some class keeps a value of its own under this name."""
        return any(member in facts.stored for facts in self.classes)

    def named(self, name: str) -> ClassFacts | None:
        """The facts of a class by its bare name."""
        return next((facts for facts in self.classes if facts.name == name), None)


def scan_file(name: str, text: str) -> FileFacts | None:
    """What a Python file has to tell the others; None without anything.

    Never raises: a file that cannot be parsed has nothing to tell.
    """
    defines, builds = _may_define(text), may_build(text)
    if not defines and not builds:
        return None
    try:
        tree = parse(text)
        extensions = scan_extensions(name, tree) if builds else ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    classes = _classes(name, text, tree) if defines else ()
    return FileFacts(classes, extensions) if classes or extensions else None


def scan_classes(name: str, text: str) -> tuple[ClassFacts, ...]:
    """The part of ``scan_file`` that is about classes."""
    if not _may_define(text):
        return ()
    try:
        return _classes(name, text, parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _may_define(text: str) -> bool:
    """A quick look: whether a class of a file may have a member with a CUDA name."""
    return "cuda" in text and bool(_MAY_DEFINE.search(text))


def _classes(file: str, text: str, tree: ast.Module) -> tuple[ClassFacts, ...]:
    every = (_class_facts(file, text, node) for node in walk(tree) if isinstance(node, ast.ClassDef))
    return tuple(facts for facts in every if facts.methods or facts.stored)


def _class_facts(file: str, text: str, node: ast.ClassDef) -> ClassFacts:
    methods: set[str] = set()
    stored: set[str] = set()
    moves = False
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if item.name in _MEMBERS and any(_dotted(d).endswith("property") for d in item.decorator_list):
                # A property is read like a value; whether it is about tensors, its body says.
                moves_here = bool(_MOVES_TENSORS.search(ast.get_source_segment(text, item) or ""))
                (methods if moves_here else stored).add(item.name)
                moves = moves or moves_here
            elif item.name in _MEMBERS:
                methods.add(item.name)
                moves = moves or bool(_MOVES_TENSORS.search(ast.get_source_segment(text, item) or ""))
        elif isinstance(item, (ast.Assign, ast.AnnAssign)):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            stored.update(t.id for t in targets if isinstance(t, ast.Name) and t.id in _MEMBERS)
    for inner in walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr in _MEMBERS:
            stored.add(inner.attr)
    bases = tuple(_dotted(base) for base in node.bases)
    return ClassFacts(file, node.name, bases, frozenset(methods), frozenset(stored), moves)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def packages_of(files: Iterable[str]) -> frozenset[str]:
    """The folders of the packages that lie in no other one, of Python files with these names."""
    folders = {file.rpartition("/")[0] for file in files if file.endswith("/__init__.py")}
    return frozenset(folder for folder in folders if folder.rpartition("/")[0] not in folders)


def merge_facts(
    parts: Iterable[FileFacts | None], native: Iterable[NativeFile] = (), files: Iterable[str] = ()
) -> Project:
    """One Project from what ``scan_file`` found in each Python file, in order, and from the C++ files.

    ``files`` are the names of the Python files.
    """
    from migrator.project.gathering import catalog

    known = [part for part in parts if part]
    classes = tuple(facts for part in known for facts in part.classes)
    extensions = [extension for part in known for extension in part.extensions]
    return Project(classes, catalog(list(native), extensions), packages=packages_of(files))


def read_project(
    entries: Sequence[Entry],
    jobs: int | None = None,
    learn: Callable[[str, str], None] = lambda _name, _text: None,
) -> tuple[Project, int]:
    """The Project of all that is Python, C++ or CUDA, and how many characters its Python texts have.

    ``jobs`` is the number of processes, None for as many as are worth it.
    ``learn`` is given the name and the text of each Python file. What cannot be read is left out: it is
    reported when its turn comes.
    """
    from migrator.native.files import read_native

    facts = []
    size = 0
    for entry in entries:
        if entry.holds_python:
            try:
                text = document(read_bytes(entry.path), entry.name).text
            except Unreadable:
                continue
            size += len(text)
            facts.append(scan_file(entry.name, text))
            if entry.kind == "python":
                learn(entry.name, text)
    others = ((entry.name, entry.path) for entry in entries if entry.kind == "file")
    native = read_native(others, jobs)
    return merge_facts(facts, native, (entry.name for entry in entries)), size
