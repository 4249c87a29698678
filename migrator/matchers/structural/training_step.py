"""What a training loop does in every step that makes the NPU wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.names.index import ModuleIndex
from migrator.names.training_loops import Region, every_step, losses, training_regions
from migrator.names.tree import bare_name, called_name, chain, holder_of

_TEXTS = frozenset({"print", "format", "info", "debug", "set_postfix", "set_description", "write"})
_NUMBERS = frozenset({"float", "int", "bool", "isnan", "isfinite", "isinf"})
_FOREIGN = frozenset({"numpy", "cv2", "pandas", "PIL", "random", "math"})


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
    regions = training_regions(index)
    blocks: dict[tuple[int, int], list[ast.expr]] = {}
    for node in _places(context, rule, regions) if regions else ():
        region = every_step(index, node, regions)
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
    regions = training_regions(index) if "__main__" in index.text else []
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
        yield from _values(index, losses(index, region), region)


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
