"""What each module of a package binds, read from its sources and stubs without running them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Definition = Union[ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPILED = "torch._C"


@dataclass(frozen=True)
class Bound:
    """One binding of a name. ``sure`` is False where the name is merely in sight of the module, or may be.

    ``node`` is its definition, ``target`` what it is another name of; both are empty for a value.
    """

    sure: bool
    node: Optional[Definition] = None
    target: str = ""


Bindings = dict[str, list[Bound]]
Sources = dict[str, tuple[bool, Callable[[], str]]]


class Package:
    """The modules of a package, each parsed when it is asked for first.

    ``sources`` and ``stubs`` have, by module name, whether it is a package, and how its text is read.
    """

    def __init__(self, sources: Sources, stubs: Sources) -> None:
        self.modules = {**stubs, **sources}
        self.compiled = stubs.keys() - sources.keys()
        self._stubs = stubs
        self._known: dict[str, Bindings] = {}
        self._trees: dict[tuple[str, bool], ast.Module] = {}
        self._exported: dict[str, frozenset[str]] = {}
        self._looks: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def tree(self, module: str, stub: bool = False) -> ast.Module:
        """The parsed source of a module; its stub where there is no other, or where it is asked for."""
        if (module, stub) not in self._trees:
            text = (self._stubs if stub else self.modules)[module][1]()
            self._trees[module, stub] = ast.parse(text)
        return self._trees[module, stub]

    def bindings(self, module: str) -> Bindings:
        """Every name that a module binds, with its bindings in their order."""
        if module in self._known:
            return self._known[module]
        # Entered before it is complete, so that a circle of imports ends.
        found = self._known[module] = {}
        for name, bound in self._of_body(self.tree(module).body, module, sure=True):
            if name.startswith("-"):
                found.pop(name[1:], None)
            else:
                found.setdefault(name, []).append(bound)
        if module in self._stubs and module not in self.compiled:
            for name, bound in self._of_body(self.tree(module, stub=True).body, module, sure=False):
                if name not in found and bound.node is not None:
                    found[name] = [bound]
        # With a string a loop, a decorator or __getattr__ may make a name.
        for name in self._seen(module)[0] if module not in self.compiled else ():
            found.setdefault(name, [Bound(sure=False)])
        if module == "torch":
            self._add_compiled(found)
        return found

    def _add_compiled(self, found: Bindings) -> None:
        """``import torch`` puts what its compiled part has into the module, in a loop."""
        for part in (_COMPILED, f"{_COMPILED}._VariableFunctions"):
            for name, bounds in self.bindings(part).items() if part in self.modules else ():
                own = any(bound.sure and not bound.target for bound in bounds)
                if own and not name.startswith("_") and not name.endswith("Base"):
                    found.setdefault(name, []).append(Bound(True, target=f"{part}.{name}"))

    def exported(self, module: str) -> frozenset[str]:
        """What a module lists in its ``__all__``."""
        if module not in self._exported:
            words: set[str] = set()
            for node, _ in top_level(self.tree(module).body):
                words.update(listed(node))
            self._exported[module] = frozenset(words)
        return self._exported[module]

    def is_filled(self, module: str, what: str = "globals") -> bool:
        """Whether a module works out names that it puts into itself, or into a class of its own."""
        found = self._seen(module)[1]
        if what in found:
            return True
        return what == "globals" and (
            any("__name__" in other for other in found)
            or any("globals" in self._seen(other)[1] for other in self._stars(module))
        )

    def _stars(self, module: str) -> list[str]:
        """The modules of which a module takes all."""
        nodes = (node for node, _ in top_level(self.tree(module).body) if isinstance(node, ast.ImportFrom))
        found = [self.absolute(node, module) for node in nodes if node.names[0].name == "*"]
        return [
            other
            for other in found
            if other in self.modules and other not in ("torch", module, *self.compiled)
        ]

    def _seen(self, module: str) -> tuple[frozenset[str], frozenset[str]]:
        if module not in self._looks:
            self._looks[module] = _look(self.tree(module))
        return self._looks[module]

    def _of_body(self, body: list[ast.stmt], module: str, sure: bool) -> Iterator[tuple[str, Bound]]:
        for node, runs in top_level(body):
            yield from self._bound(node, module, sure and runs)

    def _bound(self, node: ast.stmt, module: str, sure: bool) -> Iterator[tuple[str, Bound]]:
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            yield node.name, Bound(sure, node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], Bound(False)
        elif isinstance(node, ast.ImportFrom):
            yield from self._imported(node, module, sure)
        elif isinstance(node, ast.Assign):
            # In a stub these are types for checkers: TypeVar("T").
            sure = sure and module not in self.compiled
            target = self._meant(node.value, module)
            for name in stored(node.targets):
                yield name, Bound(sure, target=target)
            yield from self._in_place(node, module, sure)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            with_value = node.value is not None or module in self.compiled
            target = self._meant(node.value, module) if node.value is not None else ""
            yield node.target.id, Bound(sure and with_value, target=target)
        elif isinstance(node, ast.Delete):
            for gone in node.targets:
                if isinstance(gone, ast.Name):
                    yield f"-{gone.id}", Bound(sure)
        elif isinstance(node, ast.For):
            for name in stored([node.target]):
                yield name, Bound(False)

    def _imported(self, node: ast.ImportFrom, module: str, sure: bool) -> Iterator[tuple[str, Bound]]:
        source = self.absolute(node, module)
        sure = sure and module not in self.compiled
        ours = source.split(".")[0] in ("torch", module.split(".")[0])
        # Out of the compiled part a name belongs to who imports it; a package offers what it imports.
        same = source.split(".")[0] == module.split(".")[0]
        offers = source.startswith(_COMPILED) or (same and self.modules[module][0])
        listed = self.exported(module)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                for other, bound in self._starred(source):
                    yield other, Bound(sure and bound, target=f"{source}.{other}")
            elif ours:
                certain = sure and (offers or name in listed or alias.asname == alias.name)
                yield name, Bound(certain, target=f"{source}.{alias.name}")
            else:
                yield name, Bound(False)

    def _starred(self, source: str) -> Iterator[tuple[str, bool]]:
        if source not in self.modules:
            return
        exported = self.exported(source)
        for name, bounds in self.bindings(source).items():
            sure = any(bound.sure for bound in bounds)
            if name in exported if exported else not name.startswith("_"):
                yield name, sure
            elif not sure:
                yield name, False  # a decorator may add it to __all__

    def _in_place(self, node: ast.Assign, module: str, sure: bool) -> Iterator[tuple[str, Bound]]:
        """``sys.modules[__name__] = Settings(…)``: the names of a class are the module's."""
        target = node.targets[0]
        if not (isinstance(target, ast.Subscript) and ast.unparse(target.value) == "sys.modules"):
            return
        if ast.unparse(target.slice) != "__name__" or not isinstance(node.value, ast.Call):
            return
        wanted = ast.unparse(node.value.func)
        for other in self.tree(module).body:
            if isinstance(other, ast.ClassDef) and other.name == wanted:
                for name, member in members(other, stub=False).items():
                    node_of = member if isinstance(member, FUNCTIONS) else None
                    yield name, Bound(sure, node_of)

    def absolute(self, node: ast.ImportFrom, module: str) -> str:
        """The module that an import statement of a module names."""
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + self.modules[module][0]]
        return ".".join(parts + ([node.module] if node.module else []))

    def _meant(self, value: ast.expr, module: str) -> str:
        """The qualified name of which an assigned value is another name; '' where it is none."""
        if isinstance(value, ast.Call) and isinstance(value.func, (ast.Name, ast.Attribute)):
            called = value.func.id if isinstance(value.func, ast.Name) else value.func.attr
            if called in ("_add_docstr", "add_docstr") and value.args:
                return self._meant(value.args[0], module)
        return self.qualified(value, module)

    def qualified(self, value: ast.expr, module: str) -> str:
        """The qualified name that a dotted expression has in a module; '' for any other expression."""
        parts = []
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            return ""
        start = value.id
        if start == "torch" or start in self.modules:
            base = start
        else:
            base = f"{module}.{start}"
        return ".".join([base, *reversed(parts)])

    def defined(self, name: str, depth: int = 12) -> tuple[str, list[Bound]]:
        """Where a qualified name comes from, and what binds it there; none for modules and the unknown."""
        parts = name.split(".")
        if depth == 0 or len(parts) == 1:
            return name if name in self.modules else "", []
        for cut in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:cut])
            if module in self.modules:
                break
        else:
            return name, []
        # A package may bind a name that is a module of it as well.
        if name in self.modules and not self.bindings(module).get(parts[-1]):
            return name, []
        bounds = self.bindings(module).get(parts[cut], [])
        # Of several the last sure one counts.
        targets = [
            bound.target
            for bound in sorted(bounds, key=lambda bound: bound.sure)
            if bound.target and bound.target != name
        ]
        nodes = [bound for bound in bounds if bound.node is not None]
        rest = parts[cut + 1 :]
        if targets and not nodes:
            return self.defined(".".join([targets[-1], *rest]), depth - 1)
        if rest:
            return "", []
        return (name, nodes) if name in self.modules and not nodes else (name, bounds)


def members(node: ast.ClassDef, stub: bool) -> dict[str, Optional[Definition]]:
    """What a class itself has: methods with their definitions, and values."""
    found: dict[str, Optional[Definition]] = {}
    for inner, _ in top_level(node.body):
        if isinstance(inner, (ast.ClassDef, *FUNCTIONS)):
            found[inner.name] = inner
        elif isinstance(inner, ast.Assign):
            found.update(dict.fromkeys(stored(inner.targets)))
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            found[inner.target.id] = None
    return found


def top_level(body: list[ast.stmt], runs: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements that run when a module is imported, in order; False for those that only checkers see."""
    for node in body:
        yield node, runs
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            checked = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            negated = checked and isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp)
            handlers = [handler.body for handler in getattr(node, "handlers", [])]
            yield from top_level(node.body, runs and (not checked or negated))
            for other in (getattr(node, "orelse", []), *handlers, getattr(node, "finalbody", [])):
                yield from top_level(other, runs and not negated)


def listed(node: ast.stmt) -> Iterator[str]:
    """What a statement lists in ``__all__``."""
    values: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            values = [node.value]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if ast.unparse(node.value.func).startswith("__all__."):
            values = list(node.value.args)
    for value in values:
        for leaf in ast.walk(value):
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and leaf.value.isidentifier():
                yield leaf.value


def stored(targets: Sequence[ast.expr]) -> Iterator[str]:
    """The names that are bound in some targets."""
    for target in targets:
        for leaf in ast.walk(target):
            if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store):
                yield leaf.id


def _look(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """Strings that are names, and what the module puts worked-out names into: classes, or ``globals``."""
    spelled, filled = set(), set()
    for leaf in ast.walk(tree):
        if isinstance(leaf, ast.Constant):
            if isinstance(leaf.value, str) and leaf.value.isidentifier():
                spelled.add(leaf.value)
        elif isinstance(leaf, ast.Call):
            if isinstance(leaf.func, ast.Name) and leaf.func.id == "setattr" and len(leaf.args) > 1:
                if not isinstance(leaf.args[1], ast.Constant):
                    filled.add(ast.unparse(leaf.args[0]))
        elif isinstance(leaf, ast.Subscript) and isinstance(leaf.ctx, ast.Store):
            if not isinstance(leaf.slice, ast.Constant) and ast.unparse(leaf.value) == "globals()":
                filled.add("globals")
    return frozenset(spelled), frozenset(filled)
