"""nn.DataParallel in a program: DistributedDataParallel takes its place, and keeps the names it gave."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from migrator.convert.draft import UncertainError
from migrator.convert.models import Wrapped, has_prefix, receiving, uses
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, ids, is_stored, last_name
from migrator.project.distributed_use import listed
from migrator.project.imports import Read

NAMES = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
CHECKPOINTS = ("state_dict", "load_state_dict")
_BY_NUMBER = re.compile(r"count|len\(|>|multi|parallel|distributed|n(?:um)?_?gpu")
_LOADS_PREFIXED = re.compile(r"\bDataParallel\(|[\"']module\.|\[7:\]")


@dataclass(frozen=True, eq=False)
class Parallel:
    """A call of nn.DataParallel, under some conditions. ``perhaps``: one of them asks for several devices."""

    file: File
    call: ast.Call
    perhaps: bool
    tests: frozenset[str]


def parallels(program: Program) -> list[Parallel]:
    """The calls of nn.DataParallel."""
    found = []
    for file, call in program.nodes(ast.Call):
        if file.called(call) in NAMES and call.args:
            function = file.function_of(call)
            ways = (up for _, up in file.above(call) if isinstance(up, (ast.If, ast.IfExp)))
            tests = [up.test for up in ways if file.function_of(up) is function]
            perhaps = any(_BY_NUMBER.search(file.index.segment(test)) for test in tests)
            found.append(Parallel(file, call, perhaps, frozenset(map(ast.dump, tests))))
    return found


def prefixed(found: list[Parallel], program: Program, others: Collection[str], read: Read) -> bool:
    """Whether keys in checkpoints have a ``module.`` before them, as nn.DataParallel puts it there.

    Where a condition chose it, the project's ``others`` say: those that load a checkpoint.
    """
    if not all(one.perhaps for one in found):
        return True
    texts = (read(name) or "" for name in others if name not in program.files) if found else ()
    return any("load_state_dict" in text and _LOADS_PREFIXED.search(text) for text in texts)


def wraps(one: Parallel, wrapped: Wrapped) -> bool:
    """Whether a call of nn.DataParallel is about a model, by its name."""
    names = {dotted(one.call.args[0])}
    assigns = (up for _, up in one.file.above(one.call) if isinstance(up, ast.Assign))
    names |= {dotted(node) for assign in assigns for node in assign.targets}
    return wrapped.home.text.rpartition(".")[2] in {name.rpartition(".")[2] for name in names}


def take_its_place(program: Program, wrapped: Wrapped, parallel: Parallel) -> None:
    """Put the wrapper before what needs the one of nn.DataParallel; where it comes later, drop ``.module``.

    Raises UncertainError where a checkpoint is loaded before the model can be wrapped.
    """
    file = wrapped.home.file
    block = file.index.block(wrapped.behind)
    last = block.index(wrapped.behind)
    first = next((number for number, each in enumerate(block) if id(parallel.call) in ids(each)), 0)
    used = [node for node in uses(wrapped.home) if file.function_of(node) is file.function_of(wrapped.behind)]
    named = [[node for node in used if id(node) in ids(each)] for each in block]
    for number in range(first, last + 1):
        needing = [node for node in named[number] if _needs_wrapper(program, wrapped, node)]
        if not needing:
            continue
        later = range(number, last + 1)
        if number == first or any(_prepares(file, block[one], named[one]) for one in later):
            raise UncertainError("checkpoint_before", wrapped.home.file, needing[0], home=wrapped.home)
        last = number - 1
        wrapped.behind = block[last]
        break
    for node in [node for number in range(first, last + 1) for node in named[number]]:
        up = file.parent(node)
        if isinstance(up, ast.Attribute) and up.attr == "module" and not _asks(file, up):
            wrapped.bare.append((wrapped.home.file, up))


def _needs_wrapper(program: Program, wrapped: Wrapped, node: ast.AST, depth: int = 3) -> bool:
    """Whether a use has to find a wrapped model: for the keys of a checkpoint, or in another function."""
    file = wrapped.home.file
    up, call = file.parent(node), file.taker_of(node)
    if isinstance(up, ast.Attribute):
        return up.attr in CHECKPOINTS and has_prefix(wrapped, node)
    if not isinstance(call, ast.Call) or call.func is node or not depth:
        return False
    for use in (use for scope in receiving(program, file, call, node) for use in uses(scope)):
        over = file.parent(use)
        if isinstance(over, ast.Attribute) and over.attr == "module" and not _asks(file, over):
            return True
        if _needs_wrapper(program, wrapped, use, depth - 1):
            return True
    return False


def _asks(file: File, node: ast.AST) -> bool:
    """Whether a condition around a node asks first if the model is wrapped."""
    tests = (up.test for _, up in file.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(last_name(one) in ("isinstance", "hasattr") for test in tests for one in ast.walk(test))


def _prepares(file: File, statement: ast.stmt, named: list[Any]) -> bool:
    """Whether a statement changes a model in a way that has to come before it is wrapped."""
    return any(_changes(file, one) for one in named) or any(
        isinstance(node, ast.Attribute) and is_stored(node) and node.attr == "requires_grad"
        for node in ast.walk(statement)
    )


def _changes(file: File, use: ast.AST) -> bool:
    up = file.parent(use)
    if isinstance(up, ast.Attribute) and up.attr == "module":
        up = file.parent(up)
    if not isinstance(up, ast.Attribute) or up.attr in CHECKPOINTS or "param" in up.attr:
        return False
    return up.attr in ("cuda", "to", "requires_grad_") or not listed("same_when_wrapped", up.attr)
