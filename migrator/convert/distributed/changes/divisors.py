"""What the uses of a sum say of it: whether it is to be summed over the ranks, or averaged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Literal

from migrator.convert.distributed.find.batches import is_of
from migrator.convert.distributed.find.iterables import loader_calls, passed_on
from migrator.convert.distributed.find.training import Training
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, is_stored
from migrator.convert.values import origins
from migrator.names.tree import argument_of

_SAME = {"item", "double", "float", "cpu", "detach", "numpy", "tolist", "long", "int", "round", "max"}

_SAME_BY_CALL = ("float", "int", "round", "max")

# How a sum is made one of all ranks: as a sum or as a mean, as another one is, or only for the screen.
Use = Literal["sum", "mean", "either", "shown", "unclear"]


def kind_of_use(program: Program, training: Training, node: ast.AST, sums: set[str]) -> Use:
    """What a use of a sum says of it."""
    up: Any = training.file.parent(node)
    if is_stored(node):  # loss /= n
        return _by(program, training, up.value, sums) if isinstance(up.op, ast.Div) else "unclear"
    node = same_number(training.file, node)
    up = training.file.parent(node)
    if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Div, ast.FloorDiv)):
        if up.left is node:
            return _by(program, training, up.right, sums)
        return "either" if sums & set(map(dotted, ast.walk(up.left))) else "unclear"
    while not isinstance(up, ast.stmt):
        if isinstance(
            up, (ast.Call, ast.JoinedStr, ast.Tuple, ast.FormattedValue, ast.Attribute, ast.keyword)
        ) or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and up.right is node):
            node, up = up, training.file.parent(up)
        else:
            return "unclear"
    return "shown" if isinstance(up, ast.Expr) else "unclear"


def same_number(file: File, node: ast.AST) -> Any:
    """What stands for the same number, or that many times it: ``100 * float(node.item())``."""
    while True:
        up: Any = file.parent(node)
        if isinstance(up, ast.Attribute) and up.attr in _SAME and isinstance(file.parent(up), ast.Call):
            node = file.parent(up)
        elif isinstance(up, ast.Call) and dotted(up.func) in _SAME_BY_CALL and node in up.args:
            node = up
        elif isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult):
            other = up.left if up.right is node else up.right
            if not isinstance(other, ast.Constant):
                return node
            node = up
        else:
            return node


def _by(program: Program, training: Training, node: ast.AST, sums: set[str]) -> Use:
    """What the number by which a sum is divided says of it."""
    while isinstance(node, ast.Call) and dotted(node.func) in ("float", "int", "max") and node.args:
        node = node.args[0]
    if dotted(node) in sums:
        return "either"
    index = round_number(training.batches)
    if index and isinstance(node, ast.BinOp) and dotted(node.left) == index:
        return "mean" if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) else "unclear"
    answers = {_length(program, training, file, one) for file, one in _origins(program, training, node)}
    return answers.pop() if len(answers) == 1 else "unclear"


def round_number(loop: Any) -> str:
    """What ``enumerate`` counts in."""
    called = [dotted(one.func) for one in ast.walk(loop.iter) if isinstance(one, ast.Call)]
    if "enumerate" in called and isinstance(loop.target, ast.Tuple):
        return dotted(loop.target.elts[0])
    return ""


def _origins(program: Program, training: Training, node: Any) -> Iterator[tuple[File, Any]]:
    for file, one in origins(program, training.file, node):
        inner = passed_on(program, file, one, training.known) if isinstance(one, ast.Subscript) else []
        yield from [(where, value) for where, value, _ in inner] or [(file, one)]


def _length(program: Program, training: Training, file: File, node: ast.AST) -> Use:
    """What a number that is the length of something means for a sum that is divided by it."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "len" or len(node.args) != 1:
        return "unclear"
    measured = node.args[0]
    if isinstance(measured, ast.Attribute) and measured.attr in ("dataset", "sampler"):
        if loader_calls(program, file, measured.value, training.known):
            return "sum" if measured.attr == "dataset" else "mean"
    if loader_calls(program, file, measured, training.known):
        return "mean"
    if any(is_of(program, drawn, measured) for drawn in training.drawn):
        return "mean"
    own = {id(one) for _, one in origins(program, file, measured)}
    for loader in training.loaders:
        data = argument_of(loader.call, "dataset") or next(iter(loader.call.args), None)
        if data is None:
            continue
        same = loader.file is file and file.function_of(data) is file.function_of(measured)
        if same and ast.dump(data) == ast.dump(measured):
            return "sum"
        if own and own == {id(one) for _, one in origins(program, loader.file, data)}:
            return "sum"
    return "unclear"
