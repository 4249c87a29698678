"""What one release of torch or torchvision has: its public names, and the keywords they take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tools.releases.bindings import FUNCTIONS, Bound, Definition, Package, members, top_level
from tools.releases.signatures import of_definitions


class Fact(NamedTuple):
    """What a name is at one version.

    ``kind`` is module, class, function, value, alias, or maybe: the sources leave
    open whether the name is there. ``of`` is what an alias stands for, or a class's bases, of which ``?`` is
    one that was not read. ``parameters`` are words as in ``signatures``.
    """

    kind: str
    of: str = ""
    parameters: tuple[str, ...] = ()


Facts = dict[str, Fact]
MAYBE = Fact("maybe")


class Release(NamedTuple):
    """What was read of one release.

    ``compiled`` are the names of ``torch`` and of tensors that come from its compiled part. The stubs leave
    some of these out: ``words``, the strings in that part, show what may be there for all that.
    """

    facts: Facts
    compiled: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


# Bases that bring no names of their own.
_PLAIN = {"object", "type", "ABC", "ABCMeta", "Generic", "Protocol", "_TensorMeta"}
_TENSOR_PARTS = ("torch._C._TensorBase", "torch._C.TensorBase")
_TENSOR = "torch._C.TensorBase"


class _Reader:
    def __init__(self, package: Package, root: str) -> None:
        self.package, self.root = package, root
        self.facts: Facts = {}
        # Where a definition is -> every sure spelling of it.
        self.spellings: dict[str, set[str]] = {}
        self.definitions: dict[str, list[Bound]] = {}
        self.opened: list[str] = []  # modules beside which a package binds another one by that name
        self.modules = [
            name
            for name in package.modules
            if name.split(".")[0] == root and _is_public(name.rpartition(".")[0])
        ]

    def read(self) -> Facts:
        for module in self.modules:
            self.facts[module] = Fact("module")
        for module in self.modules:
            if _is_public(module):
                self._read_module(module)
                if module != "torch" and self.package.is_filled(module):
                    self.facts[module] = Fact("module", "?")
        for module in self.modules:
            if any(f"{module}.".startswith(f"{opened}.") for opened in self.opened):
                self.facts[module] = Fact("module", "?")
        self._emit()
        return self.facts

    def compiled(self) -> frozenset[str]:
        """The names of ``torch`` and of tensors that come from its compiled part."""
        bound = self.package.bindings("torch").items() if "torch" in self.package.modules else ()
        plain = {
            f"torch.{name}"
            for name, bounds in bound
            if any(one.sure and one.target.startswith("torch._C.") for one in bounds)
        }
        return frozenset(plain | {name for name in self.facts if name.startswith(f"{_TENSOR}.")})

    def _read_module(self, module: str) -> None:
        for name, bounds in self.package.bindings(module).items():
            if name.startswith("__") or not name.isidentifier():
                continue
            spelled = f"{module}.{name}"
            place, found = self.package.defined(spelled)
            sure = any(bound.sure for bound in bounds)
            own = any(bound.node is not None for bound in bounds)
            if not sure or (name.startswith("_") and not own):
                self.facts.setdefault(spelled, MAYBE)
            elif any(bound.node is not None for bound in found):
                self.definitions[place] = [bound for bound in found if bound.node is not None]
                self.spellings.setdefault(place, set()).add(spelled)
            elif place in self.package.modules and place != spelled:
                if spelled in self.package.modules:
                    # `from torch.ao.nn import quantized` beside a module of that name: either may be meant.
                    self.opened.append(spelled)
                elif _is_public(place) and spelled not in self.facts:
                    self.facts[spelled] = Fact("alias", place)
            elif spelled not in self.facts:
                self.facts[spelled] = Fact("value")

    def _emit(self) -> None:
        homes: dict[str, str] = {}
        waiting = sorted(self.definitions)
        seen = set(waiting)
        # The bases of classes, wherever they are defined, belong to them.
        while waiting:
            place = waiting.pop()
            for bound in self.definitions[place]:
                if isinstance(bound.node, ast.ClassDef):
                    for base in self._bases(bound.node, place):
                        if base in self.definitions and base not in seen:
                            seen.add(base)
                            waiting.append(base)
        for place in self.definitions:
            spelled = self.spellings.get(place)
            home = (
                ""
                if place in _TENSOR_PARTS
                else min(spelled or {""}, key=lambda name: (name.count("."), len(name), name))
            )
            # A definition without any public spelling is in the table under its place.
            homes[place] = home or (_TENSOR if place in _TENSOR_PARTS else place)
        for place, bounds in self.definitions.items():
            home = homes[place]
            node = bounds[-1].node
            words = of_definitions(bound.node for bound in bounds)
            if isinstance(node, ast.ClassDef):
                bases = [homes.get(base, base) or "?" for base in self._bases(node, place)]
                module = self._module(place)
                filled = module not in self.package.compiled and self.package.is_filled(module, node.name)
                if filled or _is_open(node) or (place.startswith("torch._C.") and home != _TENSOR):
                    bases.append("?")  # the stubs of most compiled classes are incomplete
                self.facts[home] = Fact("class", " ".join(dict.fromkeys(bases)), words)
                self._emit_members(home, [b.node for b in bounds if isinstance(b.node, ast.ClassDef)])
            else:
                self.facts[home] = Fact("function", "", words)
            for other in self.spellings.get(place, set()) - {home}:
                self.facts[other] = Fact("alias", home)

    def _module(self, place: str) -> str:
        module = place.rpartition(".")[0]
        while module not in self.package.modules:
            module = module.rpartition(".")[0]
        return module

    def _bases(self, node: ast.ClassDef, place: str) -> list[str]:
        """Where the bases of a class are defined; '' for one that is not found."""
        module = self._module(place)
        found = []
        # What a metaclass has can be asked of the class.
        for base in [*node.bases, *(word.value for word in node.keywords if word.arg == "metaclass")]:
            expression = base.value if isinstance(base, ast.Subscript) else base
            name = self.package.qualified(expression, module)
            if name.rpartition(".")[2] in _PLAIN:
                continue
            defined, bounds = self.package.defined(name) if name else ("", [])
            classes = [bound for bound in bounds if isinstance(bound.node, ast.ClassDef)]
            if classes:
                self.definitions.setdefault(defined, classes)
                found.append(defined)
            else:
                # torchvision's modules derive from torch's.
                found.append(defined if self.root != "torch" and defined.startswith("torch.") else "")
        return found

    def _emit_members(self, home: str, nodes: list[ast.ClassDef]) -> None:
        for node in nodes:
            overloads: dict[str, list[Definition]] = {}
            for inner, _ in top_level(node.body):
                if isinstance(inner, FUNCTIONS):
                    overloads.setdefault(inner.name, []).append(inner)
            for name, member in members(node, stub=False).items():
                if name.startswith("_"):
                    continue
                if name in overloads and not _is_property(overloads[name][0]):
                    words = of_definitions(overloads[name], method=True)
                    self.facts[f"{home}.{name}"] = Fact("function", "", words)
                elif isinstance(member, ast.ClassDef):
                    self.facts[f"{home}.{name}"] = Fact("class", "?", ("?",))
                else:
                    self.facts[f"{home}.{name}"] = Fact("value")
            for name in _set_on_self(node):
                self.facts.setdefault(f"{home}.{name}", MAYBE)


def read(package: Package, root: str, words: frozenset[str] = frozenset()) -> Release:
    """Every public name of a package, and of private ones what public classes are made of."""
    reader = _Reader(package, root)
    return Release(reader.read(), reader.compiled(), words)


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def _is_property(node: Definition) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def _is_open(node: ast.ClassDef) -> bool:
    """Whether a class hands unknown attributes on to something else."""
    for inner in node.body:
        if isinstance(inner, FUNCTIONS) and inner.name in ("__getattr__", "__getattribute__"):
            return "getattr(" in ast.unparse(inner).partition("\n")[2]
    return False


def _set_on_self(node: ast.ClassDef) -> Iterator[str]:
    for leaf in ast.walk(node):
        if isinstance(leaf, ast.Attribute) and isinstance(leaf.ctx, ast.Store):
            if isinstance(leaf.value, ast.Name) and leaf.value.id == "self" and not leaf.attr.startswith("_"):
                yield leaf.attr
