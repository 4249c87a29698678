"""Which functions TorchScript compiles: it knows neither ``.npu()`` nor ``.is_npu``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from migrator.matchers.context import FileContext
from migrator.names.tree import FUNCTIONS, Function, bare_name
from migrator.project.offers import SCRIPTS_MODULES

_COMPILERS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.export"})
_CALLS = ("torch.jit.script", "torch.jit.script_if_tracing")
_LEFT_OUT = frozenset({"torch.jit.ignore", "torch.jit.unused"})


def in_torchscript(context: FileContext, node: ast.AST) -> bool:
    """Whether TorchScript compiles a function: by a decorator, or by a call of torch.jit.script.

    A call compiles ``forward`` of its module, the methods and functions that it calls, here and in other
    files, and those of what it holds. Which module a call somewhere in the project means is seldom seen, so
    all of them are taken for compiled: what TorchScript compiles does the same elsewhere.
    """
    index = context.index
    function, owner = index.function_of(node), index.class_of(node)
    if function is not None:
        decorators = _decorators(context, function)
        if decorators & _LEFT_OUT:
            return False
        if decorators & _COMPILERS:
            return True
    if owner is None:
        return function is not None and function.name in _functions(context)
    index.expand(owner)
    if any(index.qualified_name(base) == "torch.jit.ScriptModule" for base in owner.bases):
        return True
    if function is None or not context.project.offers.of(SCRIPTS_MODULES):
        return False
    return function.name in _methods(context, owner)


def _decorators(context: FileContext, function: Function) -> set[str]:
    context.index.expand(function)
    return {context.index.qualified_name(each) for each in function.decorator_list}


def _methods(context: FileContext, owner: ast.ClassDef) -> frozenset[str]:
    """The methods of a module that ``forward`` reaches; none of another class."""

    def find() -> frozenset[str]:
        return _reached(_defined(owner), ["forward"], own=True) if owner.bases else frozenset()

    return context.index.once(("compiled", owner), find)


def _functions(context: FileContext) -> frozenset[str]:
    """The functions of the file that a call of torch.jit.script compiles, itself or through a module."""
    index = context.index

    def find() -> frozenset[str]:
        functions = _defined(index.tree)
        calls = (call for call in index.calls if index.qualified_name(call.func) in _CALLS)
        first = [item.id for call in calls for item in call.args[:1] if isinstance(item, ast.Name)]
        first += [name for name in functions if context.project.is_scripted(name, context.name)]
        first += [name for name, item in functions.items() if _decorators(context, item) & _COMPILERS]
        for owner in index.classes if context.project.offers.of(SCRIPTS_MODULES) else ():
            compiled = _methods(context, owner)
            for name, item in _defined(owner).items():
                first += _called(item, own=False) if name in compiled else ()
        return _reached(functions, first, own=False)

    return index.once(("compiled",), find)


def _defined(holder: ast.Module | ast.ClassDef) -> dict[str, Function]:
    """The functions that stand in a body itself."""
    return {item.name: item for item in holder.body if isinstance(item, FUNCTIONS)}


def _reached(functions: Mapping[str, Function], first: Iterable[str], own: bool) -> frozenset[str]:
    """Those of some functions that the first ones call, these too."""
    reached: set[str] = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name in functions and name not in reached:
            reached.add(name)
            waiting += _called(functions[name], own)
    return frozenset(reached)


def _called(function: Function, own: bool) -> list[str]:
    """The names that a function calls: of its own object, or bare ones."""
    called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    if own:
        members = (each for each in called if isinstance(each, ast.Attribute))
        return [each.attr for each in members if bare_name(each.value) == "self"]
    return [each.id for each in called if isinstance(each, ast.Name)]
