"""Where a value goes: what takes it one step on, and the places where it ends, behind choices and names.

A reader that judges each step takes ``taken_by`` by itself, and goes on from ``Sink.holder``, whose value is
this one, or holds it. ``goes_to`` does so for those who want the ends.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, Union

from migrator.light import NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.tree import (
    bare_name,
    defaults,
    is_read,
    last_name,
    only_target,
    parameters,
    string_value,
    targets_of,
)

# What a holder does with a value.
Kind = Union[
    Literal["choice", "element"],  # one of several that the holder may be; one in a list, tuple or set
    Literal["same", "test"],  # the holder hands it on: *x, await x, the body of a lambda; or is decided by it
    Literal["text", "operand"],  # a part of a text; of a sum, by its operator
    Literal["called", "argument"],  # what is called, or one of its arguments: by place, or by name
    Literal["method", "member", "indexed"],  # the object of a method or an attribute, by name; of an index
    Literal["key", "value", "look-up"],  # a dictionary's key; its value, by its key; what is looked up
    Literal["assigned", "added"],  # what a target gets, also by ``+=``, under its last name
    Literal["returned", "iterated", "compared", "default", "annotation", "case", "unused", "other"],
]
_KINDS: dict[type, Kind] = {
    ast.List: "element",
    ast.Tuple: "element",
    ast.Set: "element",
    ast.Starred: "same",
    ast.Await: "same",
    ast.Lambda: "same",
    ast.JoinedStr: "text",
    ast.BoolOp: "choice",
    ast.IfExp: "choice",
    ast.Compare: "compared",
    ast.Expr: "unused",
    ast.arg: "annotation",
    ast.comprehension: "iterated",
    getattr(ast, "MatchValue", ast.Module): "case",
    ast.Module: "unused",
}
# Of these the holder has the value, or one of which it is a part, and hands it on.
CHOICES, LISTS = ("choice", "element", "same"), ("element",)


class Sink(NamedTuple):
    """What takes a value: how, the node that does, the value there, and under which name, at which place."""

    kind: Kind
    holder: ast.AST
    value: ast.AST
    name: str = ""
    place: int = -1


def taken_by(index: ModuleIndex, node: ast.AST) -> Sink:
    """What takes the value of an expression first."""
    holder = index.parent(node) or index.tree
    if isinstance(holder, ast.keyword):
        return Sink("argument", index.parent(holder) or holder, node, holder.arg or "")
    if isinstance(holder, ast.Call):
        place = next((place for place, each in enumerate(holder.args) if each is node), -1)
        return Sink("called" if place < 0 else "argument", holder, node, place=place)
    if isinstance(holder, ast.Attribute):
        call = index.call_of(holder)
        return Sink("method" if call else "member", call or holder, node, holder.attr)
    if isinstance(holder, (ast.IfExp, ast.If, ast.While, ast.Assert)) and node is holder.test:
        return Sink("test", holder, node, holder.__class__.__name__)
    if isinstance(holder, ast.BinOp):
        return Sink("operand", holder, node, holder.op.__class__.__name__)
    if isinstance(holder, ast.Dict):
        keys = keys_of(index, holder)
        return Sink("value" if node in keys else "key", holder, node, string_value(keys.get(node)) or "")
    if isinstance(holder, ast.Subscript):
        return Sink("look-up" if node is holder.slice else "indexed", holder, node)
    if isinstance(holder, ast.AnnAssign) and node is holder.annotation:
        return Sink("annotation", holder, node, last_name(holder.target))
    if isinstance(holder, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        target = holder.target if isinstance(holder, ast.NamedExpr) else targets_of(holder)[0]
        key = string_value(target.slice) if isinstance(target, ast.Subscript) else last_name(target)
        return Sink("assigned", holder, node, key or "")
    if isinstance(holder, ast.AugAssign):
        return Sink("added", holder, node, last_name(holder.target))
    if isinstance(holder, ast.Return):
        function = index.function_of(holder)
        return Sink("returned", holder, node, function.name if function is not None else "")
    if isinstance(holder, (ast.For, ast.AsyncFor)):
        return Sink("iterated" if node is holder.iter else "other", holder, node, last_name(holder.target))
    if isinstance(holder, ast.arguments):
        names = (each.arg for each, default in defaults(holder) if default is node)
        return Sink("default", holder, node, next(names, ""))
    return Sink(_KINDS.get(holder.__class__, "other"), holder, node)


def keys_of(index: ModuleIndex, table: ast.Dict) -> dict[ast.AST, ast.expr | None]:
    """The keys of a dictionary by their values; each of thousands of values asks."""
    return index.once(("keys", table), lambda: dict(zip(table.values, table.keys)))


def values_of(index: ModuleIndex, table: ast.Dict) -> dict[ast.AST | None, ast.expr]:
    """The values of a dictionary by their keys, in the same way."""
    return index.once(("values", table), lambda: dict(zip(table.keys, table.values)))


def kept_as(index: ModuleIndex, node: ast.AST) -> str:
    """The name under which a value is kept where it stands; empty where it has none.

    That is the name of an argument, a variable, an attribute or a parameter with that default, or a key.
    """
    sink = taken_by(index, node)
    return sink.name if sink.kind in ("argument", "value", "assigned", "default") else ""


def behind(index: ModuleIndex, node: ast.AST, kinds: Collection[str] = CHOICES) -> Sink:
    """What takes a value behind sinks of some kinds: the choices and lists that it is in, or lists alone."""
    sink = taken_by(index, node)
    return behind(index, sink.holder, kinds) if sink.kind in kinds else sink


def read_as_parameter(index: ModuleIndex, node: ast.AST) -> Sequence[ast.Name]:
    """Where a function of the file reads a value that it gets as an argument; nothing behind other calls."""
    kind, call, _, name, place = taken_by(index, node)
    function = index.function_called(call) if kind == "argument" and isinstance(call, ast.Call) else None
    scope = index.inside(function)
    if function is None or scope is None:
        return ()
    names = [each.arg for each in parameters(function.args)]
    return index.uses(name or "".join(names[place : place + 1]), scope)


def goes_to(index: ModuleIndex, node: ast.AST) -> Iterator[Sink]:
    """The places that take a value: behind choices and lists, and where the one name is read that it gets.

    So is an attribute of ``self`` in its class.
    """
    seen: set[ast.AST] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        sink = behind(index, each)
        target = only_target(sink.holder) if sink.kind == "assigned" else None
        if isinstance(target, ast.Name):
            waiting += reversed(index.uses_of(target))
        elif isinstance(target, ast.Attribute) and bare_name(target.value) == "self":
            owner, same = index.class_of(target), index.members(target.attr)
            of_self = (each for each in same if is_read(each) and bare_name(each.value) == "self")
            waiting += [each for each in of_self if index.class_of(each) is owner]
        if not isinstance(target, ast.Name):
            yield sink
