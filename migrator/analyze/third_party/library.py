"""All files of a library together: which definition a name means, and what a call calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from migrator.analyze.third_party.source_facts import ClassFacts, FunctionFacts, SourceFacts
from migrator.project.module_names import SOURCE_FOLDER

# A definition: the name of its module, and its name inside that (empty: the module itself).
Key = tuple[str, str]
# What a call may call: for each alternative the definitions that run.
Callees = list[list[Key]]

_DEPTH = 12
_FUNCTION_BASES = (
    "torch.autograd.Function",
    "torch.autograd.function.Function",
    "autograd.Function",
    "Function",
)


@dataclass(frozen=True)
class Meaning:
    """What a dotted name stands for: a module, class or function of the library, or a name outside of it."""

    kind: str  # module | class | function | outside
    module: str
    name: str = ""


class Library:
    """The definitions of a library, by module and name."""

    def __init__(self, files: Iterable[SourceFacts]) -> None:
        self.modules: dict[str, SourceFacts] = {}
        for facts in files:
            self.modules.setdefault(facts.module, facts)
        self._lines: dict[Key, list[Key]] = {}

    def function(self, key: Key) -> FunctionFacts:
        """The facts of a function, or of a module's own statements."""
        facts = self.modules[key[0]]
        return facts.functions[key[1]] if key[1] else facts.top

    def functions(self) -> Iterator[Key]:
        """Every function, method and module."""
        for module, facts in self.modules.items():
            yield module, ""
            for name in facts.functions:
                yield module, name

    # -- names -----------------------------------------------------------------

    def meaning(self, full: str, depth: int = 0) -> Meaning | None:
        """What a full name means; None where the library ends and nothing is known."""
        if depth > _DEPTH:
            return None
        parts = full.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                rest = parts[length:]
                return self._inside(module, rest, depth) if rest else self._module_or(module, depth)
        if parts[0] == SOURCE_FOLDER:  # where the folder is a package
            return self.meaning(full[len(SOURCE_FOLDER) + 1 :], depth + 1)
        return Meaning("outside", "", full)

    def _module_or(self, module: str, depth: int) -> Meaning:
        """A module, or what its package binds to the same name: ``from .nms import nms``."""
        package, _, name = module.rpartition(".")
        if package in self.modules and self.modules[package].imports.get(name, module) != module:
            bound = self.meaning(self.modules[package].imports[name], depth + 1)
            if bound is not None and bound.kind in ("function", "class"):
                return bound
        return Meaning("module", module)

    def _inside(self, module: str, rest: list[str], depth: int) -> Meaning | None:
        facts = self.modules[module]
        name = rest[0]
        if name in facts.classes:
            inner = ".".join(rest)
            if inner in facts.functions:
                return Meaning("function", module, inner)
            if inner in facts.classes:
                return Meaning("class", module, inner)
            return Meaning("member", module, inner)
        if name in facts.functions:
            return Meaning("function", module, name) if len(rest) == 1 else None
        after = "." + ".".join(rest[1:]) if rest[1:] else ""
        if name in facts.assigned and facts.assigned[name].split(".")[0] != name:
            value = facts.assigned[name]
            if "(" in value or "[" in value:
                return None
            return self.named(module, value + after, depth + 1)
        if name in facts.imports:
            target = facts.imports[name]
            if target == f"{module}.{name}":
                return None  # from . import name, of a module that is not here
            return self.meaning(target + after, depth + 1)
        for star in facts.stars:
            if star in self.modules and star != module:
                found = self._inside(star, rest, depth + 1) if depth < _DEPTH else None
                if found is not None:
                    return found
        return None

    def named(
        self, module: str, dotted: str, depth: int = 0, imports: dict[str, str] | None = None
    ) -> Meaning | None:
        """What a dotted name means that is read in a module, or in a function with imports of its own."""
        first, dot, rest = dotted.partition(".")
        if imports and first in imports:
            return self.meaning(imports[first] + dot + rest, depth + 1)
        return self._inside(module, dotted.split("."), depth) if module in self.modules else None

    # -- classes -----------------------------------------------------------------

    def class_facts(self, key: Key) -> ClassFacts:
        """The facts of a class."""
        return self.modules[key[0]].classes[key[1]]

    def ancestors(self, key: Key) -> list[Key]:
        """A class and its bases inside the library, in the order of look-up (depth first, each once)."""
        known = self._lines.get(key)
        if known is not None:
            return known
        line = [key]
        self._lines[key] = line  # of a class that is its own base
        for base in self.class_facts(key).bases:
            meant = self.named(key[0], base)
            if meant is not None and meant.kind == "class":
                line += [k for k in self.ancestors((meant.module, meant.name)) if k not in line]
        return line

    def outside_bases(self, key: Key) -> set[str]:
        """The full names of a class's bases outside of the library."""
        found = set()
        for module, name in self.ancestors(key):
            for base in self.modules[module].classes[name].bases:
                meant = self.named(module, base)
                if meant is not None and meant.kind == "outside":
                    found.add(meant.name)
        return found

    def method(self, key: Key, name: str, skip_own: bool = False) -> Key | None:
        """The method that a class has under a name."""
        for module, owner in self.ancestors(key)[1 if skip_own else 0 :]:
            if f"{owner}.{name}" in self.modules[module].functions:
                return module, f"{owner}.{name}"
        return None

    def construction(self, key: Key) -> list[Key]:
        """What runs when a class is called."""
        return [m for m in (self.method(key, name) for name in ("__new__", "__init__", "__post_init__")) if m]

    def instance_call(self, key: Key) -> list[Key]:
        """What runs when an object of a class is called."""
        found = self.method(key, "forward") or self.method(key, "__call__")
        return [found] if found else []

    def is_autograd(self, key: Key) -> bool:
        """Whether a class is an autograd Function: then ``apply`` runs its ``forward``."""
        return bool(self.outside_bases(key) & set(_FUNCTION_BASES))

    # -- calls -----------------------------------------------------------------

    def callees(self, caller: Key, target: str) -> Callees:
        """What a call in a function may call, as far as that can be told; empty for anything dynamic."""
        return _Resolver(self, caller).callees(target, 0)

    def outside_name(self, caller: Key, target: str) -> str:
        """The full name of what a call calls outside of the library; empty where it is none, or not known."""
        if "(" in target or "[" in target:
            return ""
        meant = _Resolver(self, caller).meaning(target)
        return meant.name if meant is not None and meant.kind == "outside" else ""


class _Resolver:
    """Looks names up from inside one function."""

    def __init__(self, library: Library, caller: Key) -> None:
        self.library = library
        self.module, self.name = caller
        self.facts = library.modules[self.module]
        # The function and those around it, the innermost first.
        self.around: list[tuple[str, FunctionFacts]] = []
        parts = self.name.split(".")
        for length in range(len(parts), 0, -1):
            outer = ".".join(parts[:length])
            if outer in self.facts.functions:
                self.around.append((outer, self.facts.functions[outer]))
        self.owner = next(
            (
                ".".join(parts[:length])
                for length in range(len(parts) - 1, 0, -1)
                if ".".join(parts[:length]) in self.facts.classes
            ),
            "",
        )

    def meaning(self, dotted: str) -> Meaning | None:
        first = dotted.partition(".")[0]
        for outer, facts in self.around:
            if f"{outer}.{first}" in self.facts.functions:
                return Meaning("function", self.module, f"{outer}.{dotted}")
            if first in facts.imports:
                return self.library.named(self.module, dotted, 0, facts.imports)
            if first in facts.parameters or first in facts.types:
                return None
        return self.library.named(self.module, dotted)

    def callees(self, target: str, depth: int) -> Callees:
        if depth > _DEPTH or not target:
            return []
        if target.endswith("()"):
            return self._instances(target, depth)
        if target.endswith("[]"):
            meant = self.meaning(target[:-2]) if "(" not in target else None
            if meant is not None and meant.kind == "function":
                return [[(meant.module, meant.name)]]  # a triton kernel with its grid
            return self._instances(target, depth)
        head, _, last = target.rpartition(".")
        if head:
            if head == "super()":
                found = self.library.method((self.module, self.owner), last, True) if self.owner else None
                return [[found]] if found else []
            types = self.types(head, depth + 1)
            if types:
                return [runs for key in types for runs in (self._member(key, last, depth) if key else [[]])]
        elif self._is_local(target):
            return self._instances(target, depth)
        meant = self.meaning(target) if "(" not in target and "[" not in target else None
        return [] if meant is None else self._called(meant)

    def _is_local(self, name: str) -> bool:
        return any(name in facts.types or name in facts.parameters for _, facts in self.around)

    def _called(self, meant: Meaning) -> Callees:
        key = (meant.module, meant.name)
        if meant.kind == "function":
            return [[key]]
        if meant.kind == "class":
            made = self.library.construction(key)
            return [made] if made else []
        if meant.kind == "member":
            owner, _, last = meant.name.rpartition(".")
            if owner in self.library.modules[meant.module].classes:
                return [runs for runs in self._member((meant.module, owner), last, 0) if runs]
        return []

    def _member(self, key: Key, name: str, depth: int) -> Callees:
        """What ``object.name()`` runs for an object of a class, or for the class itself."""
        found = self.library.method(key, name)
        if not found and name == "apply" and self.library.is_autograd(key):
            found = self.library.method(key, "forward")
        if found:
            return [[found]]
        resolver = _Resolver(self.library, (key[0], f"{key[1]}.{name}"))
        runs: Callees = []
        for value in self._attribute(key, name):
            runs += resolver.callees(value, depth + 1) or [[]]
        return runs

    def _attribute(self, key: Key, name: str) -> tuple[str, ...]:
        for module, owner in self.library.ancestors(key):
            values = self.library.modules[module].classes[owner].attributes.get(name)
            if values:
                return values
        return ()

    def _instances(self, target: str, depth: int) -> Callees:
        return [self.library.instance_call(key) if key else [] for key in self.types(target, depth)]

    def types(self, dotted: str, depth: int) -> list[Key | None]:
        """The classes of the library that a value may be of; None for an alternative that is not known."""
        if depth > _DEPTH:
            return []
        if dotted in ("self", "cls") and self.owner:
            return [(self.module, self.owner)]
        if dotted.endswith("[]"):
            return self.types(dotted[:-2], depth + 1)
        if dotted.endswith("()"):
            inner = dotted[:-2]
            meant = self.meaning(inner) if "(" not in inner and "[" not in inner else None
            return [(meant.module, meant.name)] if meant is not None and meant.kind == "class" else []
        head, _, last = dotted.rpartition(".")
        values: tuple[str, ...] = ()
        if not head:
            for _, facts in self.around:
                if dotted in facts.types:
                    values = facts.types[dotted]
                    break
                if dotted in facts.parameters:
                    return []
            if not values:
                meant = self.meaning(dotted)
                return [(meant.module, meant.name)] if meant is not None and meant.kind == "class" else []
        else:
            owners = self.types(head, depth + 1)
            if not owners:
                meant = self.meaning(dotted) if "(" not in dotted and "[" not in dotted else None
                return [(meant.module, meant.name)] if meant is not None and meant.kind == "class" else []
            found: list[Key | None] = []
            for owner in owners:
                if owner is None:
                    found.append(None)
                    continue
                resolver = _Resolver(self.library, (owner[0], f"{owner[1]}.__init__"))
                for value in self._attribute(owner, last):
                    found += resolver.types(value, depth + 1) or [None]
            return found if any(found) else []
        found = []
        for value in values:
            if value != dotted and not value.startswith(dotted + "."):
                found += self.types(value, depth + 1) or [None]
        return found if any(found) else []
