"""Qualified names: what an expression stands for, in whatever way the module of it was imported or kept.

Beside imports, aliases and plain assignments (``cudas = torch.cuda``) these are ``getattr(torch, "cuda")``,
``importlib.import_module("torch.cuda")``, ``optional_import("torch")``, ``sys.modules["torch"]``,
``vars(torch)["cuda"]``, and modules of torch that are kept in attributes, handed to functions, given by
functions of the file, or handed on by other files of the project.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Optional

from migrator.light import NamedTuple
from migrator.names.made_from import given_by_each, parameter_of
from migrator.names.outline import Binding
from migrator.names.tree import FUNCTIONS, attributes, bare_name, elements, is_none, string_value

if TYPE_CHECKING:
    from migrator.names.index import ModuleIndex

# What says that an attribute named torch is the module: others of that name have none of these.
_OF_TORCH = frozenset({"amp", "backends", "cuda", "device", "distributed", "nn"})
# Modules that programs keep in attributes and hand to functions.
_KEPT = frozenset({"torch", "torch.amp", "torch.cuda", "torch.cuda.amp", "torch.distributed"})
# Names of functions that import what a string names: optional_import, lazy_import, LazyModule.
_IMPORTS = re.compile(
    r"(?:^|_)import(?:_|$)|^_?lazy_?(?:import|load|module)|^(?:get|load|require)_module$", re.IGNORECASE
)
_IMPORT_CALLS = ("__import__", "import_module", "importorskip")

_Value = Optional[ast.expr]


def full_name(index: ModuleIndex, node: ast.AST) -> str:
    """The full dotted name that an expression stands for; asked for by ``ModuleIndex.qualified_name``."""
    if isinstance(node, ast.Attribute):
        _, base, behind = rooted(index, node)
        return ".".join([base, *(each.attr for each in behind)]) if base else ""
    if isinstance(node, ast.Call):
        return _of_call(index, node)
    if not isinstance(node, ast.Subscript):
        return ""
    # sys.modules["torch"], vars(torch)["cuda"], globals()["torch"], import_("torch")[0]
    held, key = node.value, string_value(node.slice)
    if key is None:
        is_first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        return index.qualified_name(held) if is_first and imports(held) else ""
    if isinstance(held, ast.Call) and bare_name(held.func) == "globals":
        return _bound(index, key, index.module_scope.look_up(key))
    return _of_key(index, held, key)


def rooted(index: ModuleIndex, chain: ast.expr) -> tuple[ast.expr, str, list[ast.Attribute]]:
    """What a dotted name begins with, what that stands for, and the attributes behind it.

    The root of ``helpers.torch.cuda`` is ``helpers.torch``, that of ``self.lib.cuda`` may be ``self.lib``.
    """
    written = [*attributes(chain)][::-1]
    node = written[0].value if written else chain
    base = index.qualified_name(node)
    if not written:
        return node, base, written
    names = [each.attr for each in written]
    if not base and isinstance(node, ast.Name):
        owner = _class_named(index, node)
        kept = _kept_in(index, owner, names[0]) if owner is not None else ""
        if kept:
            return written[0], kept, written[1:]
        if names[0] in _OF_TORCH and (len(names) > 1 or node.id == "torch"):
            return node, _given(index, node), written
    if base and not base.startswith("torch"):
        for place, name in enumerate(names):
            given = _handed_on(index, ".".join([base, *names[: place + 1]]))
            if name == "torch" and not _OF_TORCH.isdisjoint(names[place + 1 : place + 2]):
                given = name
            if given:
                return written[place], given, written[place + 1 :]
    return node, base, written


def of_name(index: ModuleIndex, node: ast.Name) -> str:
    """What a name stands for: looked for once where it is bound, and not for each use."""
    bindings = index.bindings(node)
    if bindings:
        name = node.id
        return index.ask(("bound", name), bindings[0].node, lambda: _bound(index, name, bindings), "")
    if node.id == "torch" and index.stars:  # from helpers import *
        return "torch"
    return next(filter(None, (_handed_on(index, f"{star}.{node.id}") for star in index.stars)), "")


def _handed_on(index: ModuleIndex, name: str) -> str:
    return index.neighbours.module(name) if index.neighbours is not None else ""


def _bound(index: ModuleIndex, name: str, bindings: Sequence[Binding]) -> str:
    for binding in bindings:
        if binding.kind == "import":
            return _handed_on(index, binding.name) or binding.name
    if len(bindings) != 1 or bindings[0].kind != "assign":
        return ""
    statement, value = bindings[0].node, bindings[0].value or _first_unpacked(bindings[0].node, name)
    if isinstance(value, ast.Name) and value.id == name:  # torch = torch, in a class
        outer = index.scope_of(statement).parent
        return _bound(index, name, outer.look_up(name)) if outer else ""
    if value is None:
        return ""
    index.expand(statement)
    found = index.qualified_name(value)
    # What other calls and keys give may be anything of that name.
    return found if isinstance(value, (ast.Name, ast.Attribute)) or imports(value) or found in _KEPT else ""


def _first_unpacked(statement: ast.AST, name: str) -> _Value:
    """The import in ``torch, has_torch = optional_import("torch")``, where ``name`` is the first name."""
    if not isinstance(statement, ast.Assign) or not imports(statement.value):
        return None
    is_first = any(bare_name(each) == name for each in elements(statement.targets[0])[:1])
    return statement.value if is_first else None


def imports(node: ast.AST | None) -> bool:
    """Whether a call imports what a string names, or looks up an attribute by one."""
    if not isinstance(node, ast.Call):
        return False
    called = bare_name(node.func)
    if called in ("__import__", "getattr"):
        return isinstance(node.func, ast.Name)
    return called in _IMPORT_CALLS or _IMPORTS.search(called) is not None


def _of_call(index: ModuleIndex, call: ast.Call) -> str:
    called = bare_name(call.func)
    if not call.args:  # the module of torch that a function of the file gives: get_torch()
        function = index.function_called(call)
        return _same_module(index, index.returned(function)) if function is not None else ""
    first = string_value(call.args[0])
    if called == "getattr" and len(call.args) == 2 and not call.keywords:
        base, name = index.qualified_name(call.args[0]), string_value(call.args[1])
        return f"{base}.{name}" if base and name else ""
    if first is None:
        return ""
    if called == "get" and isinstance(call.func, ast.Attribute):  # sys.modules.get("torch")
        return _of_key(index, call.func.value, first)
    if called == "__import__":
        return first.partition(".")[0]
    if called in _IMPORT_CALLS:
        return "" if first.startswith(".") else first
    if first.partition(".")[0] != "torch" or not imports(call):
        return ""
    # optional_import("torch", name="nn")
    inner = [item.value for item in call.keywords if item.arg == "name"]
    names = [first, *(string_value(each) or "" for each in inner)]
    return ".".join(names) if all(names) else ""


def _of_key(index: ModuleIndex, held: ast.expr, key: str) -> str:
    owner = namespace_of(held)
    if owner is not None:
        base = index.qualified_name(owner)
        return f"{base}.{key}" if base else ""
    return key if index.qualified_name(held) == "sys.modules" else ""


def namespace_of(node: ast.expr) -> _Value:
    """The object whose names ``vars(x)`` and ``x.__dict__`` hold; None for anything else."""
    if isinstance(node, ast.Call) and bare_name(node.func) == "vars" and len(node.args) == 1:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__dict__" else None


def _class_named(index: ModuleIndex, node: ast.expr) -> ast.ClassDef | None:
    """The class of the file that ``self``, ``cls`` or its own name means."""
    if isinstance(node, ast.Name) and node.id in ("self", "cls"):
        return index.class_of(node)
    definition = index.definition(node)
    return definition if isinstance(definition, ast.ClassDef) else None


def _kept_in(index: ModuleIndex, owner: ast.ClassDef, name: str) -> str:
    """The module of torch that a class, or one of its bases in the file, keeps under a name."""

    def find() -> str:
        scope = index.inside(owner)
        in_body = scope.bindings.get(name, ()) if scope is not None else ()
        values = [*index.stored_on_self(owner).get(name, ()), *_held_in_body(index, in_body)]
        if values:
            return _same_module(index, values)
        bases = (_class_named(index, base) for base in owner.bases)
        return next(filter(None, (_kept_in(index, base, name) for base in bases if base)), "")

    return index.ask(f"kept as {name}", owner, find, "")


def _held_in_body(index: ModuleIndex, bindings: Sequence[Binding]) -> Iterator[_Value]:
    """What a class's body gives a name: a value, or what a property returns."""
    for binding in bindings:
        if isinstance(binding.node, FUNCTIONS):
            is_property = any(bare_name(each) == "property" for each in binding.node.decorator_list)
            returned = index.returned(binding.node)
            yield from returned if is_property else [None] * len(returned)
        else:
            yield binding.value


def _given(index: ModuleIndex, node: ast.Name) -> str:
    """The module of torch that a parameter stands for: by its name, its default, or what all calls give."""
    bindings = index.bindings(node)
    if len(bindings) != 1 or not isinstance(written := bindings[0].node, ast.arg):
        return ""
    if node.id == "torch":
        return "torch"
    if bindings[0].value is not None:
        return _same_module(index, [bindings[0].value])
    parameter = parameter_of(index, node)
    if parameter is None or isinstance(index.parent(parameter.function), ast.ClassDef):
        return ""
    return index.ask("given", written, lambda: _same_module(index, given_by_each(index, parameter)), "")


def _same_module(index: ModuleIndex, values: Sequence[_Value]) -> str:
    """The module of torch that all of some values are, ``None`` aside; empty where they are not one."""
    names = {_module(index, each) for each in values if not is_none(each)}
    name = names.pop() if len(names) == 1 else ""
    return name if name in _KEPT else ""


def _module(index: ModuleIndex, node: _Value) -> str:
    if node is None:
        return ""
    return index.qualified_name(node) or (_given(index, node) if isinstance(node, ast.Name) else "")


OF_ANY = "?."  # before a method's name, where it is not known of what it is one


class Neighbours(NamedTuple):
    """Answers by the full names that imports bring, relative ones as they are written.

    ``module`` is the module of torch that a name stands for, empty for none; ``asked`` is what a flag, or a
    function's answer, depends on: names of torch and others, and ``version`` for torch's release. ``taker``
    is the place of the argument that is a device to a function, a class, or a method behind ``OF_ANY``; None
    where none is known. ``met`` is what changes with what the file has under a name, or imports: ``npu``
    where one is beside a branch for NPUs, ``device`` where it meets one, else empty, and the places of the
    strings in other files; nothing where there are none.
    """

    module: Callable[[str], str]
    asked: Callable[[str], frozenset[str]]
    taker: Callable[[str], int | None]
    met: Callable[[bool, str], tuple[str, ...]]
