"""Where a value goes: what takes it one step on, and the places where it ends, behind choices and names.

A reader that judges each step takes ``taken_by`` by itself, and goes on from ``Sink.holder``, whose value is
this one, or holds it. ``goes_to`` does so for those who want the ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, Union

from migrator.names.index import ModuleIndex
from migrator.names.tree import defaults, last_name, only_target, string_value, targets_of

# What a holder does with a value. It is one of several that it may be, or one in a list, a tuple or a set.
CHOICE, ELEMENT = "choice", "element"
# It only hands the value on: *x, await x, the body of a lambda. Or it decides: a condition.
SAME, TEST = "same", "test"
# A part of a text; an operand; what is called, or one of its arguments: by place, or by name.
TEXT, OPERAND, CALLED, ARGUMENT = "text", "operand", "called", "argument"
# The object of a method that is called, or of which an attribute is read, by name; the one that is indexed.
METHOD, MEMBER, INDEXED = "method", "member", "indexed"
# A dictionary's key, or its value, with the key as name; what is looked up in an object.
KEY, VALUE, LOOK_UP = "key", "value", "look-up"
# What a target gets, also by ``+=``, under its last name; what a function returns; what is looped over.
ASSIGNED, ADDED, RETURNED, ITERATED = "assigned", "added", "returned", "iterated"
COMPARED, DEFAULT, ANNOTATION, CASE = "compared", "default", "annotation", "case"
UNUSED, OTHER = "unused", "other"

_COLLECTIONS = (ast.List, ast.Tuple, ast.Set)
_KINDS: dict[type, str] = {
    **dict.fromkeys(_COLLECTIONS, ELEMENT),
    **dict.fromkeys((ast.Starred, ast.Await, ast.Lambda), SAME),
    ast.JoinedStr: TEXT,
    ast.BinOp: OPERAND,
    ast.BoolOp: CHOICE,
    ast.Compare: COMPARED,
    ast.Expr: UNUSED,
    ast.arg: ANNOTATION,
    ast.comprehension: ITERATED,
    getattr(ast, "MatchValue", ast.Module): CASE,
    ast.Module: UNUSED,
}
# Of these the holder has the value, or one of which it is a part, and hands it on.
_HANDING_ON = frozenset({CHOICE, ELEMENT, SAME})
_Assignment = Union[ast.Assign, ast.AnnAssign, ast.NamedExpr]


class Sink(NamedTuple):
    """What takes a value: how, the node that does, the value there, and under which name, at which place."""

    kind: str
    holder: ast.AST
    value: ast.AST
    name: str = ""
    place: int = -1


def taken_by(index: ModuleIndex, node: ast.AST) -> Sink:
    """What takes the value of an expression first."""
    holder = index.parent(node) or index.tree
    if isinstance(holder, ast.keyword):
        return Sink(ARGUMENT, index.parent(holder) or holder, node, holder.arg or "")
    if isinstance(holder, ast.Call):
        place = next((place for place, each in enumerate(holder.args) if each is node), -1)
        return Sink(CALLED if place < 0 else ARGUMENT, holder, node, place=place)
    if isinstance(holder, ast.Attribute):
        call = index.call_of(holder)
        return Sink(METHOD if call else MEMBER, call or holder, node, holder.attr)
    if isinstance(holder, ast.IfExp):
        return Sink(TEST if node is holder.test else CHOICE, holder, node)
    if isinstance(holder, ast.Dict):
        keys = keys_of(index, holder)
        return Sink(VALUE if node in keys else KEY, holder, node, string_value(keys.get(node)) or "")
    if isinstance(holder, ast.Subscript):
        return Sink(LOOK_UP if node is holder.slice else INDEXED, holder, node)
    if isinstance(holder, ast.AnnAssign) and node is holder.annotation:
        return Sink(ANNOTATION, holder, node, last_name(holder.target))
    if isinstance(holder, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        target = holder.target if isinstance(holder, ast.NamedExpr) else targets_of(holder)[0]
        key = string_value(target.slice) if isinstance(target, ast.Subscript) else last_name(target)
        return Sink(ASSIGNED, holder, node, key or "")
    if isinstance(holder, ast.AugAssign):
        return Sink(ADDED, holder, node, last_name(holder.target))
    if isinstance(holder, ast.Return):
        function = index.function_of(holder)
        return Sink(RETURNED, holder, node, function.name if function is not None else "")
    if isinstance(holder, (ast.For, ast.AsyncFor)):
        return Sink(ITERATED if node is holder.iter else OTHER, holder, node, last_name(holder.target))
    if isinstance(holder, ast.arguments):
        names = (each.arg for each, default in defaults(holder) if default is node)
        return Sink(DEFAULT, holder, node, next(names, ""))
    if isinstance(holder, (ast.If, ast.While, ast.Assert)):
        return Sink(TEST if node is holder.test else OTHER, holder, node)
    return Sink(_KINDS.get(holder.__class__, OTHER), holder, node)


def keys_of(index: ModuleIndex, table: ast.Dict) -> dict[ast.AST, ast.expr | None]:
    """The keys of a dictionary by their values; each of thousands of values asks."""
    return index.once(("keys", table), lambda: dict(zip(table.values, table.keys)))


def kept_as(index: ModuleIndex, node: ast.AST) -> str:
    """The name under which a value is kept where it stands; empty where it has none.

    That is the name of an argument, a variable, an attribute or a parameter with that default, or a key.
    """
    sink = taken_by(index, node)
    return sink.name if sink.kind in (ARGUMENT, VALUE, ASSIGNED, DEFAULT) else ""


def behind_choices(index: ModuleIndex, node: ast.AST) -> Sink:
    """What takes a value, or the choice or the list that it is in."""
    sink = taken_by(index, node)
    return behind_choices(index, sink.holder) if sink.kind in _HANDING_ON else sink


def goes_to(index: ModuleIndex, node: ast.AST) -> Iterator[Sink]:
    """The places that take a value: behind choices and lists, and where the one name is read that it gets."""
    seen: set[ast.AST] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        sink = behind_choices(index, each)
        target = only_target(sink.holder) if sink.kind == ASSIGNED else None
        if isinstance(target, ast.Name):
            waiting += reversed(index.uses_of(target))
        else:
            yield sink
