"""What a training loop does in every step that makes the NPU wait."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Union

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.names.index import ModuleIndex
from migrator.names.tree import (
    FUNCTIONS,
    LOOPS,
    Function,
    bare_name,
    called_name,
    chain,
    holder_of,
    last_name,
)

_TEXTS = frozenset({"print", "format", "info", "debug", "set_postfix", "set_description", "write"})
_NUMBERS = frozenset({"float", "int", "bool", "isnan", "isfinite", "isinf"})
_FOREIGN = frozenset({"numpy", "cv2", "pandas", "PIL", "random", "math"})

# What stands below such a condition is not done in every step.
_NOW_AND_THEN = re.compile(
    r"log|print|verbos|debug|eval|valid|test|save|rank|master|main_process|last|display|summar|plot|wandb|tensorboard"
    r"|writer|visual|freq|interval|every|nan|finite|profil|metric|report|checkpoint|progress|pbar",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(r"optim|^opt|^solver|scaler", re.IGNORECASE)
# Functions that compute gradients to measure or to check something.
_NO_TRAINING = re.compile(r"_*(?:test|check|bench|profil|measur|backward$|step$|__call__$)", re.IGNORECASE)
Region = Union[ast.For, ast.AsyncFor, ast.While, Function]


class StepOptions(Options):
    """Which calls of what ``match`` names make the NPU wait.

    A ``.method`` is called without arguments, of anything that is no other library's; with ``of_batch`` it is
    one of what the loop goes over. ``without`` is a keyword with which a call is fine. ``values``: also a
    loss that is printed, put into a text, or decides a condition.
    """

    of_batch: bool = False
    without: str = ""
    values: bool = False


def find(context: FileContext, rule: Rule[StepOptions]) -> Iterator[Match]:
    """One finding for each block of statements, with the lines."""
    index = context.index
    regions = _training_regions(index)
    blocks: dict[tuple[int, int], list[ast.expr]] = {}
    for node in _places(context, rule, regions) if regions else ():
        region = _every_step(index, node, regions)
        if region is not None:
            block = id(region), id(index.parent(index.statement_of(node)))
            blocks.setdefault(block, []).append(node)
    for nodes in blocks.values():
        first = min(nodes, key=index.start)
        lines = sorted({node.lineno for node in nodes})
        more = _(" (lines {str})", str=", ".join(map(str, lines))) if len(lines) > 1 else ""
        api = bare_name(first)
        if isinstance(first, ast.Call):
            api = index.qualified_name(first.func) or f".{called_name(first)}()"
        yield found(context, rule, first, api=api, message=rule.message.replace("{api}", api) + more)


def find_settings(context: FileContext, rule: Rule) -> Iterator[Match]:
    """The first training loop of a program: a file that is run, not imported."""
    index = context.index
    regions = _training_regions(index) if "__main__" in index.text else []
    if regions:
        first = min(regions, key=index.start)
        span = (index.start(first), index.line_span(first.lineno, first.lineno)[1])
        yield found(context, rule, first, api=rule.match[0], span=span)


def _places(context: FileContext, rule: Rule[StepOptions], regions: list[Region]) -> Iterator[ast.expr]:
    index, options = context.index, rule.options
    for call in index.calls:
        name = index.qualified_name(call.func)
        if options.without in {keyword.arg for keyword in call.keywords}:
            continue
        if any(pattern_fits(pattern, name) for pattern in rule.match):
            yield call
        elif not name and isinstance(call.func, ast.Attribute) and f".{call.func.attr}" in rule.match:
            if options.of_batch and _is_of_batch(index, call, regions):
                yield call
            elif not options.of_batch and not call.args and not _is_foreign(index, call.func.value):
                yield call
    for region in regions if options.values else ():
        yield from _values(index, _losses(index, region), region)


def _is_foreign(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a value comes from another library, such as an array of NumPy."""
    every = [*chain(node)]
    every += index.assigned(every[-1]) if isinstance(every[-1], ast.Name) else []
    calls = (each for each in every if isinstance(each, ast.Call))
    return any(index.qualified_name(each.func).split(".")[0] in _FOREIGN for each in calls)


def _is_of_batch(index: ModuleIndex, call: ast.Call, regions: list[Region]) -> bool:
    """Whether what is moved is what a loop over a loader gave: its target, or a part of that."""
    holder = holder_of(call)
    node = [*chain(holder)][-1] if holder is not None else None
    if not isinstance(node, ast.Name):
        return False
    values = [getattr(b.node, "value", None) for b in index.bindings(node) if b.kind == "assign"]
    roots = [value.value if isinstance(value, ast.Subscript) else value for value in values]
    names = {node.id, *(root.id for root in roots if isinstance(root, ast.Name))}
    loops = (each for each in regions if isinstance(each, ast.For))
    around = (loop for loop in loops if loop.lineno <= call.lineno <= (loop.end_lineno or 0))
    targets = (part for loop in around for part in ast.walk(loop.target))
    return any(isinstance(part, ast.Name) and part.id in names for part in targets)


def _values(index: ModuleIndex, names: set[str], region: Region) -> Iterator[ast.expr]:
    """Where the value of one of these tensors is needed on the host."""
    for name in names:
        for scope_use in index.uses(name, index.scope_of(region.body[0])):
            parent = index.parent(scope_use)
            if isinstance(parent, ast.JoinedStr):
                yield scope_use
            elif isinstance(parent, ast.Call) and scope_use in parent.args:
                called = called_name(parent)
                is_number = called in _NUMBERS and index.qualified_name(parent.func).split(".")[0] != "torch"
                if called in _TEXTS or is_number:
                    yield scope_use
            elif isinstance(parent, ast.Compare) and isinstance(index.parent(parent), ast.If):
                if not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in parent.ops):
                    yield scope_use


# -- where a program trains: the loops and functions that run once a step -----


def _training_regions(index: ModuleIndex) -> list[Region]:
    """The innermost loops, or functions without one, that call ``backward()`` or step an optimizer."""
    regions: dict[int, Region] = {}
    for call in index.calls:
        name = called_name(call)
        if name == "backward" or (name == "step" and _OPTIMIZER.search(last_name(holder_of(call)))):
            region = _region(index, call)
            if region is not None:
                regions[id(region)] = region
    for function in index.functions:
        if function.name == "training_step" and index.class_of(function) is not None:
            regions[id(function)] = function
    # The larger one of two is enough: its steps are those of the smaller one as well.
    return [r for r in regions.values() if not any(id(up) in regions for up in index.above(r))]


def _region(index: ModuleIndex, node: ast.AST) -> Region | None:
    """The innermost loop around a node within its function; else the function, unless it tests something."""
    function = index.function_of(node)
    if function is not None and _NO_TRAINING.match(function.name):
        return None
    around = index.above(index.statement_of(node))
    return next((up for up in around if isinstance(up, (*LOOPS, *FUNCTIONS))), None)


def _every_step(index: ModuleIndex, node: ast.AST, regions: list[Region]) -> Region | None:
    """The region in whose every step a node is reached; None where it is reached now and then, or never."""
    statement = index.statement_of(node)
    if statement in regions:
        return None  # the head of the loop
    for child, up in index.way_up(statement):
        if (isinstance(up, ast.If) and _is_rare(index, up)) or isinstance(up, ast.ExceptHandler):
            return None
        region = next((each for each in regions if each is up), None)
        if region is not None:
            return None if child in getattr(region, "orelse", ()) else region
        if isinstance(up, (*FUNCTIONS, ast.ClassDef)):
            return None
    return None


def _is_rare(index: ModuleIndex, statement: ast.If) -> bool:
    if any(isinstance(node, ast.Mod) for node in ast.walk(statement.test)):
        return True
    return bool(_NOW_AND_THEN.search(index.segment(statement.test)))


def _losses(index: ModuleIndex, region: Region) -> set[str]:
    """The names of tensors in a region: those that ``backward()`` is called on, or given to ``scale()``."""
    names = set()
    for call in index.calls:
        if not region.lineno <= call.lineno <= (region.end_lineno or 0):
            continue
        if called_name(call) == "backward" and isinstance(call.func, ast.Attribute):
            value = call.func.value
            if isinstance(value, ast.Call) and called_name(value) == "scale" and value.args:
                value = value.args[0]
            if isinstance(value, ast.Name):
                names.add(value.id)
    return names
