"""nn.DataParallel in a program: DistributedDataParallel takes its place, and keeps the names it gave."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass

from migrator.convert.draft import Draft, UncertainError
from migrator.convert.models import Wrapped, has_prefix
from migrator.convert.program import Program, below, dotted, is_stored, last_name
from migrator.convert.write import first_argument
from migrator.project.distributed_use import listed
from migrator.project.imports import Read

NAMES = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
CHECKPOINTS = ("state_dict", "load_state_dict")
_BY_NUMBER = re.compile(r"count|len\(|>|multi|parallel|distributed|n(?:um)?_?gpu")
_LOADS_PREFIXED = re.compile(r"\bDataParallel\(|[\"']module\.|\[7:\]")


@dataclass(frozen=True, eq=False)
class Parallel:
    """A call of nn.DataParallel, under some conditions. ``perhaps``: one of them asks for several devices."""

    call: ast.Call
    perhaps: bool
    tests: frozenset[str]


def parallels(program: Program) -> list[Parallel]:
    """The calls of nn.DataParallel."""
    found = []
    for call in program.nodes(ast.Call):
        if program.name(call) in NAMES and call.args:
            scope = program.scope_of(call)
            ways = (up for _, up in program.above(call) if isinstance(up, (ast.If, ast.IfExp)))
            tests = [up.test for up in ways if program.scope_of(up) is scope]
            perhaps = any(_BY_NUMBER.search(program.segment(test)) for test in tests)
            found.append(Parallel(call, perhaps, frozenset(map(ast.dump, tests))))
    return found


def prefixed(found: list[Parallel], program: Program, others: Collection[str], read: Read) -> bool:
    """Whether keys in checkpoints have a ``module.`` before them, as nn.DataParallel puts it there.

    Where a condition chose it, the project's ``others`` say: those that load a checkpoint.
    """
    if not all(one.perhaps for one in found):
        return True
    texts = (read(name) or "" for name in others if name not in program.files) if found else ()
    return any("load_state_dict" in text and _LOADS_PREFIXED.search(text) for text in texts)


def wraps(program: Program, one: Parallel, wrapped: Wrapped) -> bool:
    """Whether a call of nn.DataParallel is about a model, by its name."""
    assigns = (up for _, up in program.above(one.call) if isinstance(up, ast.Assign))
    nodes = [one.call.args[0], *(node for assign in assigns for node in assign.targets)]
    last = wrapped.home.text.rpartition(".")[2]
    return any(dotted(node).rpartition(".")[2] == last for node in nodes)


def replace_parallel(draft: Draft, found: list[Parallel]) -> None:
    """Take nn.DataParallel away, with its guards; other programs that import a file keep it."""
    program = draft.program
    for node in program.nodes(ast.Name, ast.Attribute):
        up = program.parent(node)
        if program.name(node) not in NAMES or isinstance(up, ast.Attribute) or is_stored(node):
            continue
        around = program.parent(up) if up else None
        if not isinstance(up, ast.Call) and not isinstance(around, ast.Call):
            raise UncertainError("data_parallel_used", node)
        if not isinstance(up, ast.Call) or up.func is not node:  # isinstance(model, nn.DataParallel)
            both = f"{program.segment(node)}, DistributedDataParallel"
            both = both if isinstance(up, ast.Tuple) else f"({both})"
            entry = program.file(node) is program.entry
            draft.replace(node, "DistributedDataParallel" if entry else both)
    for one in found:
        _take_away(draft, one.call)


def _take_away(draft: Draft, call: ast.Call) -> None:
    program, file = draft.program, draft.program.file(call)
    draft.changed(call, "DistributedDataParallel takes its place")
    assign = program.parent(call)
    if file is not program.entry:
        code = f"{program.segment(call.args[0])} if dist.is_initialized() else {program.segment(call)}"
        draft.replace(call, code if isinstance(assign, (ast.Assign, ast.Return)) else f"({code})")
        return
    changes = draft.of(call)
    changes.edits += first_argument(file, call)
    if not isinstance(assign, ast.Assign) or dotted(assign.targets[0]) != dotted(call.args[0]):
        return
    block = program.parent(assign)
    if isinstance(block, ast.If) and assign in block.body and all(map(_only_wraps, block.body)):
        if block.orelse or not program.own_line(block):
            raise UncertainError("data_parallel_condition", block)
        changes.removed.add(block)
    elif program.own_line(assign) and not program.is_alone(assign):
        changes.removed.add(assign)


def _only_wraps(statement: ast.stmt) -> bool:
    """Whether a statement wraps a model for several devices, or says so."""
    called = last_name(getattr(statement, "value", None))
    if isinstance(statement, ast.Assign):
        return called.endswith("DataParallel")
    return isinstance(statement, ast.Expr) and called in ("print", "info")


def take_its_place(program: Program, wrapped: Wrapped, parallel: Parallel) -> None:
    """Put the wrapper before what needs the one of nn.DataParallel; where it comes later, drop ``.module``.

    Raises UncertainError where a checkpoint is loaded before the model can be wrapped.
    """
    scope = program.scope_of(wrapped.behind)
    block = program.file(scope).block(wrapped.behind)
    last = block.index(wrapped.behind)
    first = next((number for number, each in enumerate(block) if parallel.call in below(each)), 0)
    used = [node for node in program.uses(wrapped.home) if program.scope_of(node) is scope]
    named = [[node for node in used if node in below(each)] for each in block]
    for number in range(first, last + 1):
        needing = [node for node in named[number] if _needs_wrapper(program, wrapped, node)]
        if not needing:
            continue
        later = range(number, last + 1)
        if number == first or any(_prepares(program, block[one], named[one]) for one in later):
            raise UncertainError("checkpoint_before", needing[0], home=wrapped.home)
        last = number - 1
        wrapped.behind = block[last]
        break
    for node in [node for number in range(first, last + 1) for node in named[number]]:
        up = program.parent(node)
        if isinstance(up, ast.Attribute) and up.attr == "module" and not _asks(program, up):
            wrapped.bare.append(up)


def _needs_wrapper(program: Program, wrapped: Wrapped, node: ast.expr, depth: int = 3) -> bool:
    """Whether a use has to find a wrapped model: for the keys of a checkpoint, or in another function."""
    up, call = program.parent(node), program.taker_of(node)
    if isinstance(up, ast.Attribute):
        return up.attr in CHECKPOINTS and has_prefix(program, wrapped, node)
    if not isinstance(call, ast.Call) or call.func is node or not depth:
        return False
    for use in (use for home in program.receiving(call, node) for use in program.uses(home)):
        over = program.parent(use)
        if isinstance(over, ast.Attribute) and over.attr == "module" and not _asks(program, over):
            return True
        if _needs_wrapper(program, wrapped, use, depth - 1):
            return True
    return False


def _asks(program: Program, node: ast.AST) -> bool:
    """Whether a condition around a node asks first if the model is wrapped."""
    tests = (up.test for _, up in program.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(last_name(one) in ("isinstance", "hasattr") for test in tests for one in ast.walk(test))


def _prepares(program: Program, statement: ast.stmt, named: list[ast.expr]) -> bool:
    """Whether a statement changes a model in a way that has to come before it is wrapped."""
    return any(_changes(program, one) for one in named) or any(
        isinstance(node, ast.Attribute) and is_stored(node) and node.attr == "requires_grad"
        for node in ast.walk(statement)
    )


def _changes(program: Program, use: ast.AST) -> bool:
    up = program.parent(use)
    if isinstance(up, ast.Attribute) and up.attr == "module":
        up = program.parent(up)
    if not isinstance(up, ast.Attribute) or up.attr in CHECKPOINTS or "param" in up.attr:
        return False
    return up.attr in ("cuda", "to", "requires_grad_") or not listed("same_when_wrapped", up.attr)
