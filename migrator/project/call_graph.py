"""All modules of a project together: which definition a name means, and what a call calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from migrator.light import Frozen
from migrator.project.module_names import SOURCE_FOLDER
from migrator.project.modules import Definition, ModuleFacts

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


class Meaning(Frozen):
    """What a dotted name stands for: a definition, a member of a class, or a name outside of the project."""

    kind: str  # module | class | function | member | outside
    module: str
    name: str = ""

    @property
    def key(self) -> Key:
        """The definition."""
        return self.module, self.name


class CallGraph:
    """The definitions of a project, by module and name."""

    def __init__(self, files: Iterable[ModuleFacts]) -> None:
        self.modules: dict[str, ModuleFacts] = {}
        for facts in files:
            self.modules.setdefault(facts.name, facts)
        self._lines: dict[Key, list[Key]] = {}
        self._around = cache(self._scopes_of)

    def definition(self, key: Key) -> Definition:
        """The facts of a definition."""
        return self.modules[key[0]].definitions[key[1]]

    def kind(self, key: Key) -> str:
        """What a name of a module is: class, function, module, or '' for what it does not define."""
        definition = self.modules[key[0]].definitions.get(key[1])
        return definition.kind if definition else ""

    # -- names -----------------------------------------------------------------

    def meaning(self, full: str, depth: int = 0) -> Meaning | None:
        """What a full name means; None where the project ends and nothing is known."""
        if depth > _DEPTH:
            return None
        parts = full.split(".")
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module in self.modules:
                if rest := parts[length:]:
                    return self._inside(module, rest, depth)
                # It, or what its package binds to the same name: ``from .nms import nms``.
                package, _, name = module.rpartition(".")
                imports = self.definition((package, "")).imports if package in self.modules else {}
                target = imports.get(name, module)
                bound = self.meaning(target, depth + 1) if target != module else None
                same = bound is not None and bound.kind in ("function", "class")
                return bound if same else Meaning("module", module)
        if parts[0] == SOURCE_FOLDER:  # where the folder is a package
            return self.meaning(full[len(SOURCE_FOLDER) + 1 :], depth + 1)
        return Meaning("outside", "", full)

    def _inside(self, module: str, rest: list[str], depth: int) -> Meaning | None:
        facts, own = self.modules[module], self.definition((module, ""))
        name, inner = rest[0], ".".join(rest)
        if self.kind((module, name)) == "class":
            return Meaning(self.kind((module, inner)) or "member", module, inner)
        if self.kind((module, name)) == "function":
            return Meaning("function", module, name) if len(rest) == 1 else None
        after = inner[len(name) :]
        if name in own.values and own.values[name][0].split(".")[0] != name:
            value = own.values[name][0]
            return None if _is_computed(value) else self.named(module, value + after, depth + 1)
        if name in own.imports:
            target = own.imports[name]
            # from . import name, of a module that is not here
            return None if target == f"{module}.{name}" else self.meaning(target + after, depth + 1)
        for star in facts.stars:
            if star in self.modules and star != module:
                found = self._inside(star, rest, depth + 1) if depth < _DEPTH else None
                if found is not None:
                    return found
        return None

    def named(
        self, module: str, dotted: str, depth: int = 0, imports: Mapping[str, str] | None = None
    ) -> Meaning | None:
        """What a dotted name means that is read in a module, or in a function with imports of its own."""
        first, dot, rest = dotted.partition(".")
        if imports and first in imports:
            return self.meaning(imports[first] + dot + rest, depth + 1)
        return self._inside(module, dotted.split("."), depth) if module in self.modules else None

    # -- classes -----------------------------------------------------------------

    def ancestors(self, key: Key) -> list[Key]:
        """A class and its bases inside the project, in the order of look-up (depth first, each once)."""
        known = self._lines.get(key)
        if known is not None:
            return known
        line = [key]
        self._lines[key] = line  # of a class that is its own base
        for base in self._bases(key):
            if base.kind == "class":
                line += [k for k in self.ancestors(base.key) if k not in line]
        return line

    def _bases(self, key: Key) -> Iterator[Meaning]:
        for base in self.definition(key).bases:
            meant = self.named(key[0], base)
            if meant is not None:
                yield meant

    def method(self, key: Key, name: str, skip_own: bool = False) -> Key | None:
        """The method that a class has under a name."""
        for module, owner in self.ancestors(key)[1 if skip_own else 0 :]:
            if self.kind((module, f"{owner}.{name}")) == "function":
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
        bases = (base for owner in self.ancestors(key) for base in self._bases(owner))
        return any(base.kind == "outside" and base.name in _FUNCTION_BASES for base in bases)

    # -- calls -----------------------------------------------------------------

    def outside_name(self, caller: Key, target: str) -> str:
        """The full name of what a call calls outside of the project; empty where it is none, or not known."""
        meant = None if _is_computed(target) else self._meaning_in(caller, target)
        return meant.name if meant is not None and meant.kind == "outside" else ""

    def _scopes_of(self, caller: Key) -> tuple[list[tuple[str, Definition]], str]:
        """A function and those around it, the innermost first, and the class around it."""
        module, parts = caller[0], caller[1].split(".")
        names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
        kinds = {name: self.kind((module, name)) for name in names}
        functions = [(name, self.definition((module, name))) for name in names if kinds[name] == "function"]
        return functions, next((name for name in names[1:] if kinds[name] == "class"), "")

    def _meaning_in(self, caller: Key, dotted: str) -> Meaning | None:
        """What a dotted name means inside a function."""
        module, first = caller[0], dotted.partition(".")[0]
        for outer, facts in self._around(caller)[0]:
            if self.kind((module, f"{outer}.{first}")) == "function":
                return Meaning("function", module, f"{outer}.{dotted}")
            if first in facts.imports:
                return self.named(module, dotted, 0, facts.imports)
            if _is_local(first, facts):
                return None
        return self.named(module, dotted)

    def callees(self, caller: Key, target: str, depth: int = 0) -> Callees:
        """What a call in a function may call, as far as that is known; empty for anything dynamic."""
        if depth > _DEPTH or not target:
            return []
        if target.endswith("()"):
            return self._instances(caller, target, depth)
        if target.endswith("[]"):
            meant = self._meaning_in(caller, target[:-2]) if "(" not in target else None
            if meant is not None and meant.kind == "function":
                return [[meant.key]]  # a triton kernel with its grid
            return self._instances(caller, target, depth)
        (around, owner), (head, _, last) = self._around(caller), target.rpartition(".")
        if head:
            if head == "super()":
                found = self.method((caller[0], owner), last, True) if owner else None
                return [[found]] if found else []
            types = self._types(caller, head, depth + 1)
            if types:
                return [runs for key in types for runs in (self._member(key, last, depth) if key else [[]])]
        elif any(_is_local(target, facts) for _, facts in around):
            return self._instances(caller, target, depth)
        meant = None if _is_computed(target) else self._meaning_in(caller, target)
        if meant is None:
            return []
        if meant.kind == "function":
            return [[meant.key]]
        if meant.kind == "class":
            return [made] if (made := self.construction(meant.key)) else []
        name, _, last = meant.name.rpartition(".")
        if meant.kind != "member" or self.kind((meant.module, name)) != "class":
            return []
        return [runs for runs in self._member((meant.module, name), last, 0) if runs]

    def _member(self, key: Key, name: str, depth: int) -> Callees:
        """What ``object.name()`` runs for an object of a class, or for the class itself."""
        found = self.method(key, name)
        if not found and name == "apply" and self.is_autograd(key):
            found = self.method(key, "forward")
        if found:
            return [[found]]
        own = (key[0], f"{key[1]}.{name}")
        every = (self.callees(own, value, depth + 1) or [[]] for value in self._attribute(key, name))
        return [runs for each in every for runs in each]

    def _attribute(self, key: Key, name: str) -> tuple[str, ...]:
        held = (self.definition(owner).values.get(name) for owner in self.ancestors(key))
        return next(filter(None, held), ())

    def _instances(self, caller: Key, target: str, depth: int) -> Callees:
        return [self.instance_call(key) if key else [] for key in self._types(caller, target, depth)]

    def _types(self, caller: Key, dotted: str, depth: int) -> list[Key | None]:
        """The classes of the project that a value may be of; None for an alternative that is not known."""
        if depth > _DEPTH:
            return []
        around, class_around = self._around(caller)
        if dotted in ("self", "cls") and class_around:
            return [(caller[0], class_around)]
        if dotted.endswith("[]"):
            return self._types(caller, dotted[:-2], depth + 1)
        head, _, last = dotted.rpartition(".")
        owners = self._types(caller, head, depth + 1) if head and not dotted.endswith("()") else []
        holder = next((facts for _, facts in around if not head and _is_local(dotted, facts)), None)
        if not owners and holder is None:  # the class that a name means, if it means one
            name = dotted.removesuffix("()")
            meant = None if _is_computed(name) else self._meaning_in(caller, name)
            return [meant.key] if meant is not None and meant.kind == "class" else []
        found: list[Key | None] = []
        for owner in owners:
            made = (owner[0], f"{owner[1]}.__init__") if owner else caller
            for value in self._attribute(owner, last) if owner else ():
                found += self._types(made, value, depth + 1) or [None]
            found += [] if owner else [None]
        for value in holder.values.get(dotted, ()) if holder is not None else ():
            if value != dotted and not value.startswith(dotted + "."):
                found += self._types(caller, value, depth + 1) or [None]
        return found if any(found) else []


def _is_computed(text: str) -> bool:
    """Whether a written expression is more than a dotted name."""
    return "(" in text or "[" in text


def _is_local(name: str, function: Definition) -> bool:
    return name in function.values or name in function.parameters
