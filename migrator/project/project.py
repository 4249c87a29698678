"""What is known of a project as a whole; rules and conversions ask it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING

from migrator.light import Frozen
from migrator.names.qualified import Neighbours
from migrator.project.frameworks import of_project
from migrator.project.module_names import absolute_name, folders_around, module_name, npu_twins, packages_of
from migrator.project.offers import (
    CALLED,
    CUDA_DEFAULT,
    DOUBLE,
    DOUBLE_ATTRIBUTE,
    FLAG,
    FOREIGN,
    MEETS,
    MODULE,
    REDUCER,
    SCRIPT,
    SCRIPTS_MODULES,
    TAKER,
    Offer,
    Offers,
)
from migrator.project.operators import Catalog, catalog

if TYPE_CHECKING:
    from migrator.findings.finding import Result
    from migrator.native.model import NativeFile, Use
    from migrator.project.added_package import Place
    from migrator.project.definitions import Definitions
    from migrator.project.entry import Candidate
    from migrator.project.facts import ClassFacts, FileFacts
    from migrator.project.library_functions import LibraryFunction
    from migrator.project.programs import Programs

# Where a project may keep its packages.
_SOURCE_FOLDERS = ("src", "python", "lib")
_MODULE_BASES = (
    r"(?:Module|ModuleList|Sequential|Tensor|Variable|Function|Optimizer|Parameter|Storage"
    r"|Parallel|DDP|FSDP)$"
)
# Files that a program may do without: for NVIDIA's devices, and beside what is started.
_ASIDE = (
    r"(?:^|[/_])(?:nvidia|cuda|cute_?dsl|cute)(?:_[^/]*)?/"
    r"|(?:^|/)(?:(?:tests?|testing|tools|docs?|benchmarks?)/|(?:setup|conftest)\.py$)"
)
_PLAIN_BASES = frozenset(
    {"object", "Enum", "IntEnum", "str", "int", "NamedTuple", "ABC", "abc.ABC", "enum.Enum"}
)


class Project(Frozen):
    """What matters to more than one file: classes, CUDA operators, and libraries that were judged.

    ``packages`` are the folders of the packages that lie in no other package, and the modules in folders that
    have no ``__init__.py``, without their ending, and the files of inner packages. ``twins`` are the files
    for CUDA beside which there is one for NPUs. ``definitions`` finds what a name means in other files;
    without it nobody looks there. ``starts`` are the files that show how programs are started, where that was
    asked for. ``failed`` are the files, by name, at which an earlier stage met an internal error: they are
    left as they are, and reported as such. ``offers`` is what its files offer to each other.
    ``requirements`` are the lines that may ask for a version of a library. ``programs`` finds what a script
    starts; without it nobody looks there. ``added``: what the result gets (the package of equivalents, the
    module by which Lightning finds NPUs), and its name there; ``places``: where such things lie for each
    file. ``frameworks``: how many of its files are of which, as far as they show it, and ``files`` how many
    Python files it has; none where only a part of them was read. ``uses``: what C++ and CUDA files take from
    CUDA, by name, where it is known.
    """

    classes: tuple[ClassFacts, ...] = ()
    operators: Catalog = field(default_factory=Catalog)
    libraries: Mapping[str, LibraryFunction] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    twins: frozenset[str] = frozenset()
    definitions: Definitions | None = None
    starts: tuple[Candidate, ...] = ()
    failed: Mapping[str, Result] = field(default_factory=dict)
    offers: Offers = field(default_factory=Offers)
    requirements: tuple[str, ...] = ()
    programs: Programs | None = None
    added: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    frameworks: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    uses: Mapping[str, tuple[Use, ...]] = field(default_factory=dict)

    def import_of(self, what: str, file: str) -> str:
        """The statement with which a file imports what the result gets; empty where it gets it not."""
        place, name = self.places.get(file), self.added.get(what)
        return place.statement(name) if place is not None and name else ""

    def words(self, source: str) -> frozenset[str]:
        """The words from which the rules start that look for what only this project knows."""
        if source == "cuda_operators":
            return self.operators.words()
        if source == "legacy_constructors":
            return frozenset({"Tensor"} if self.offers.of(CUDA_DEFAULT) else ())
        if source == "reducers":
            return frozenset().union(*map(self.offers.names, (DOUBLE, DOUBLE_ATTRIBUTE, REDUCER)))
        return frozenset(name.rpartition(".")[2] for name in self.libraries)

    @cached_property
    def main_packages(self) -> frozenset[str]:
        """The packages that all files of the project mean by their names: at its top, or in ``src``."""
        names = [package[4:] if package.startswith("src/") else package for package in self.packages]
        return frozenset([name for name in names if "/" not in name])

    def line_words(self, source: str) -> frozenset[str]:
        """The words beside these that the lines hold at which such a rule looks, once it has started."""
        return self.operators.function_names() if source == "cuda_operators" else frozenset()

    def owns(self, name: str, file: str) -> bool:
        """Whether a file means a package of this project: it, or a folder around it, lies beside the package.

        ``name`` is the dotted name that it imports. The package of ``third_party/apex/apex`` is meant there,
        and not by the rest of the project.
        """
        folders = file.split("/")[:-1]
        parts = name.split(".")
        package = parts[0]
        if package in folders and folders.index(package) == (folders[0] in _SOURCE_FOLDERS):
            return True  # it lies in the package itself, of which nothing else may be known
        if package not in self._parts_of_packages:  # as most are
            return False
        # A folder without __init__.py is a package to who names a module in it.
        meant = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        # Of an inner package only who names a module in it: a library may have the package's own name.
        meant += [f"{each}{ending}" for each in meant[1:] for ending in (".py", "/__init__.py")]
        places = product(folders_around(file), ("", *_SOURCE_FOLDERS), meant)
        return any("/".join(filter(None, place)) in self.packages for place in places)

    @cached_property
    def _parts_of_packages(self) -> frozenset[str]:
        return frozenset(part.removesuffix(".py") for each in self.packages for part in each.split("/"))

    def folders_with(self, name: str) -> list[str]:
        """The folders, below its own, that have the package of a name: it may be added to ``sys.path``."""
        return self._folders_of.get(name.partition(".")[0], [])

    @cached_property
    def _folders_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in self.packages:
            for ending in ("", ".py", "/__init__.py"):
                folder, below, package = each.removesuffix(ending).rpartition("/")
                if below and each.endswith(ending):
                    found.setdefault(package, []).append(folder)
        return found

    def neighbours(self, file: str) -> Neighbours | None:
        """What a file may ask about the names that it imports; None where nobody has an answer."""
        if not any(map(self.offers.of, (MODULE, FLAG, TAKER, MEETS))):
            return None

        def known(kind: str, name: str) -> Offer:
            return self.offers.elsewhere(kind, absolute_name(name, file)) or Offer(kind)

        def met(own: bool, name: str) -> tuple[str, ...]:
            full = f"{module_name(file)}.{name}" if own else absolute_name(name, file)
            return tuple(each for each in self.offers.met(full, own) if not each.startswith(f"{file}:"))

        return Neighbours(
            module=cache(lambda name: "".join(known(MODULE, name).detail)),
            asked=lambda name: frozenset(known(FLAG, name).detail),
            met=met,
            taker=lambda name: place if (place := known(TAKER, name).place) >= 0 else None,
        )

    def framework_of(self, words: Iterable[str]) -> str:
        """The framework of the script that a command with these words starts; else the project's."""
        names = {word.rpartition("/")[2] for word in words}
        other = next(("".join(each.detail) for each in self.offers.of(FOREIGN) if each.name in names), "")
        return other or min(of_project(self.frameworks))

    def way_to(self, file: str) -> str:
        """How what can be started comes to a file, see ``Programs.ways``.

        Where that is unknown it is one for a ``program``, but ``perhaps`` for a file that one does without.
        """
        ways = self.programs.ways if self.programs is not None else {}
        unknown = "perhaps" if re.search(_ASIDE, file) else "program"
        return ways.get(file, "") if ways else unknown

    def is_scripted(self, function: str, file: str) -> bool:
        """Whether TorchScript may compile a function of a file, because another file calls it."""
        called = self.offers.here(CALLED, f"{module_name(file)}.{function}")
        return called is not None and (SCRIPT in called.detail or bool(self.offers.of(SCRIPTS_MODULES)))

    def related(self, facts: ClassFacts) -> bool:
        """Whether a class's ``cuda`` is about tensors: by its bases, or by what it does."""
        return facts.moves_tensors or any(re.search(_MODULE_BASES, base) for base in facts.bases)

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


def merge_facts(
    parts: Iterable[FileFacts], native: Iterable[NativeFile] = (), files: Iterable[str] = ()
) -> Project:
    """One Project from what ``scan_file`` found in each Python file, in order, and from the C++ files.

    ``files`` are the names of the Python files.
    """
    known, sources = list(parts), list(native)
    extensions = [extension for part in known for extension in part.extensions]
    try:
        operators = catalog(sources, extensions)
    except Exception:  # an internal error: the files are checked without what the others define
        import logging

        logging.getLogger("npumigrate").warning(
            "internal error, the project's CUDA operators are not known", exc_info=True
        )
        operators = Catalog()
    offers, names = Offers.of_all(part.offers for part in known), list(files)
    return Project(
        *(classes_of(known), operators),
        packages=packages_of(names),
        twins=npu_twins(names),
        offers=offers,
        frameworks=Counter("".join(each.detail) for each in offers.of(FOREIGN)),
        files=sum(name.endswith((".py", ".ipynb")) for name in names),
        uses={source.name: source.uses for source in sources if source.uses is not None},
    )


def classes_of(parts: Iterable[FileFacts]) -> tuple[ClassFacts, ...]:
    """The classes of all files."""
    return tuple(facts for part in parts for facts in part.classes)
