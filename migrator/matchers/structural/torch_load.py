"""Checkpoints that are loaded: ``map_location`` is missing or a function, or ``weights_only`` is missing."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, Optional

from migrator.language import _
from migrator.matchers.argument_edits import added_argument
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.names.goes_to import read_as_parameter, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.made_from import last_assigned
from migrator.names.tree import (
    argument_of,
    bare_name,
    called_name,
    elements,
    hands_on,
    holder_of,
    last_name,
    only_target,
    string_value,
    targets_of,
)
from migrator.project.offers import SAVED, SET_DEVICE, Offer
from migrator.project.saved_objects import is_module_name, is_options_name


class LoadOptions(Options):
    """``hints``: a regular expression for names and paths that speak of a checkpoint."""

    hints: str = ""


def find_without_place(context: FileContext, rule: Rule[LoadOptions]) -> Iterator[Match]:
    """Loads without ``map_location`` whose path, target, or what takes them, speaks of a checkpoint.

    One that was saved on a CUDA device raises on an NPU.
    """
    hints = re.compile(rule.options.hints, re.IGNORECASE)
    for call, api in context.calls_of(rule):
        if hands_on(call) or argument_of(call, "map_location", 1) is not None:
            continue
        if any(hints.search(words) for words in _words_beside(context.index, call)):
            edits = added_argument(context.index, call, "map_location", '"cpu"')
            if _saves_modules(_saved(context)) and _stays(context.index, call):
                edits = []  # the program's own file has it on the NPU, where it is used
            yield found(context, rule, call, api=api, edits=edits)


def _saved(context: FileContext) -> list[Offer]:
    """What the project saves beside tensors and plain values, with the key and all keys beside it."""
    offered = context.project.offers.of(SAVED)
    return sorted(offered, key=lambda each: (each.detail[0], each.name, each.detail))


def _saves_modules(saved: list[Offer]) -> bool:
    """Whether whole modules are saved, as they are."""
    return any(not item.name and "module" in item.detail[0] for item in saved)


def _stays(index: ModuleIndex, call: ast.Call) -> bool:
    """Whether a whole module is loaded, by its name, that nothing moves afterwards."""
    targets = targets_of(index.parent(call) or call)
    names = [each for target in targets for each in elements(target) or [target]]
    uses = _uses(index, call)
    is_module = any(is_module_name(last_name(each)) for each in names)
    moved = any(_member(index, use) in _MOVES for use in uses)
    return is_module and not moved and not any(_is_state(index, use) for use in (call, *uses))


def _words_beside(index: ModuleIndex, call: ast.Call) -> Iterator[str]:
    """The path, the targets of the assignment, the calls and the function around, the keys asked for."""
    yield from (*map(index.segment, call.args), *(_key(index, use) for use in (call, *_uses(index, call))))
    for parent in index.above(call):
        if isinstance(parent, ast.Call):
            yield called_name(parent)
        elif isinstance(parent, ast.Assign):
            yield from map(last_name, parent.targets)
        if isinstance(parent, ast.stmt):
            break
    function = index.function_of(call)
    yield function.name if function else ""


_MOVES = ("to", "cuda", "npu", "cpu")
_OF_TENSORS = ("float", "half", *_MOVES)
_DECIDES = ("weights_only", "pickle_module")
# Functions that ask for an attribute of an object.
_OF_OBJECTS = ("vars", "getattr", "setattr")
_CONDITIONS = (ast.If, ast.IfExp)


class WeightsOptions(Options):
    """``module_members``: what only a whole module is asked for, no state of one.

    ``object_members``: what only objects of some libraries have. ``paths``: words of a path under which the
    datasets of a package keep objects. ``tensor_attributes``: what a tensor or an array is asked for, too.
    """

    module_members: tuple[str, ...] = ()
    object_members: tuple[str, ...] = ()
    tensor_attributes: tuple[str, ...] = ()
    paths: dict[str, str] = field(default_factory=dict)


def find_without_pickle(context: FileContext, rule: Rule[WeightsOptions]) -> Iterator[Match]:
    """Loads of files that hold more than tensors and plain values, which torch reads since 2.6.

    The project writes them, or a module is read from them.
    """
    index = context.index
    for call, api in context.calls_of(rule):
        if hands_on(call) or len(call.args) > 2 or any(each.arg in _DECIDES for each in call.keywords):
            continue
        # It may stand behind one with ``weights_only`` that an old torch does not take.
        handlers = (each for each in index.above(call) if isinstance(each, ast.ExceptHandler))
        if any("weights_only" in index.segment(index.parent(each) or each) for each in handlers):
            continue
        why = _held(index, rule, call, _saved(context))
        if why:
            edits = added_argument(index, call, "weights_only", "False")
            message = _("since torch 2.6 {api} reads tensors and plain values only; {why}", api=api, why=why)
            yield found(context, rule, call, api=api, edits=edits, message=message)


def _held(index: ModuleIndex, rule: Rule[WeightsOptions], call: ast.Call, saved: list[Offer]) -> str:
    """What the file holds beside that, as a clause; empty where nothing says so."""
    options, above, targets = rule.options, {*index.above(call)}, targets_of(index.parent(call) or call)
    # What is asked of ``self.checkpoint``, where it is assigned to that.
    attributes = (ast.unparse(each) for each in targets if isinstance(each, ast.Attribute))
    asked_of = (re.findall(rf"{re.escape(each)}\[[\"'](\w+)[\"']\]", index.text) for each in attributes)
    keys = {key for each in asked_of for key in each}
    uses = _uses(index, call)
    function = index.function_of(call)
    if function is not None and any(each is call or each in uses for each in index.returned(function)):
        # What the file does with what a function gives back that only reads a file.
        for given in filter(None, map(index.call_of, index.uses_of(function))):
            uses += (given, *_uses(index, given))
    is_object = ""
    for use in (call, *uses):
        # No condition behind the load stands before the use.
        is_sure = not any(isinstance(each, _CONDITIONS) and each not in above for each in index.above(use))
        member, asked = _member(index, use), getattr(index.parent(use), "attr", "")
        if member in options.module_members and is_sure:
            return _("a module is read here (.{member})", member=member)
        if asked in options.object_members and is_sure:
            is_object = _("an object is read here (.{member})", member=asked)
        of_each = _asked_of_elements(index, use, options.tensor_attributes) if is_sure else ""
        if of_each:
            is_object = _("a list of objects is read here (.{member})", member=of_each)
        key = _key(index, use)
        if key:
            keys.add(key)
            if is_options_name(key) and (member := _asked_of_options(index, use)):
                is_object = _('"{key}" is an object here (.{member})', key=key, member=member)
            read, *later = _reads(index, use)
            # Behind other keys a tensor is asked for these: checkpoint["pos_embed"].float()
            here = () if key == "ema" or is_module_name(key) else _OF_TENSORS
            of_later = (_members(index, each, _OF_TENSORS) for each in later)
            for member in chain(_members(index, read, here), *of_later):
                if member in options.module_members:
                    return _('"{key}" is a module here (.{member})', key=key, member=member)
    for item in saved:
        if item.name and not keys.isdisjoint(item.detail[1:]):
            what = _(item.detail[0])
            return _('the project saves "{key}" in such files, {what}', key=item.name, what=what)
    path = call.args[0] if call.args and not is_object else None
    values = [path, *(index.assigned(path) if isinstance(path, ast.Name) else ())]
    text = " ".join(index.segment(each) for each in values if each is not None)
    for package in (package for word, package in options.paths.items() if word in text):
        if package in index.text:
            return _("datasets of {package} store objects there", package=package)
    names = uses or ([] if keys else targets)
    unpacked = (each for name in names for each in elements(name))
    are_modules = any(is_module_name(last_name(each)) for each in unpacked)
    are_modules = are_modules and not all(item.name for item in saved)
    if names and _saves_modules(saved):
        plain = (is_module_name(last_name(each)) and not _is_state(index, each) for each in names)
        are_modules = are_modules or all(plain)
    return is_object or (_("the project saves whole modules") if are_modules else "")


def _asked_of_elements(index: ModuleIndex, use: ast.expr, but: Collection[str]) -> str:
    """An attribute of an element that only an object has: ``x[0].label``, ``f.label for f in x``."""
    around = index.parent(use)
    if isinstance(around, ast.Subscript) and isinstance(getattr(around.slice, "value", None), int):
        asked_of, above = index.parent(around), index.parent(index.parent(around))
        is_called = getattr(above, "func", None) is asked_of
        attribute = "" if is_called else getattr(asked_of, "attr", "")
        return attribute if attribute not in but else ""
    sink = taken_by(index, use)
    column = {"enumerate": 1, "zip": sink.place}.get(called_name(around) if sink.kind == "argument" else "")
    around = around if column is None else index.parent(sink.holder)
    iterated = use if column is None else sink.holder
    if not isinstance(around, (ast.For, ast.comprehension)) or around.iter is not iterated:
        return ""
    inside = around if isinstance(around, ast.For) else index.parent(around)
    target = around.target if column is None else [*elements(around.target), None, None][column]
    element, nodes = bare_name(target), [*ast.walk(inside or around)]
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    asked = [each for each in nodes if isinstance(each, ast.Attribute) and each not in called]
    read = (each.attr for each in asked if isinstance(each.value, ast.Name) and each.value.id == element)
    return next((each for each in read if element and each not in but), "")


def _asked_of_options(index: ModuleIndex, use: ast.expr) -> str:
    """What options under a key are asked for that only an object has, no dictionary: ``x["args"].lr``."""
    read, *later = _reads(index, use)
    held = only_target(index.parent(read))
    if isinstance(held, ast.Attribute):
        found = re.findall(rf"(?<![\w.]){re.escape(ast.unparse(held))}\.(\w+)", index.text)
        return next((each for each in found if not hasattr({}, each)), "")
    for each in (read, *later):
        around = index.parent(each)
        if isinstance(around, ast.Attribute) and around.value is each and not hasattr({}, around.attr):
            return around.attr
        if isinstance(around, ast.Call) and around.args[:1] == [each] and called_name(around) in _OF_OBJECTS:
            return next(filter(None, map(string_value, around.args[1:2])), "__dict__")
    return ""


def _reads(index: ModuleIndex, use: ast.expr) -> list[ast.expr]:
    """What a key gives: where it is asked for, and where the name is read that gets it there."""
    around: Any = index.parent(use)
    read = index.call_of(around) or around  # x.get("args")
    return [read, *_uses(index, read)]


def _is_state(index: ModuleIndex, use: ast.expr) -> bool:
    """Whether something is asked for by its key, or given to load_state_dict."""
    return bool(_key(index, use)) or called_name(index.parent(use)) == "load_state_dict"


def _uses(index: ModuleIndex, value: ast.expr) -> list[ast.expr]:
    """Where the name that a value is assigned to is read behind it, also in functions that get it."""
    statement = index.statement_of(value)
    behind = (use for use in index.reads_of(value) if index.start(use) > index.end(statement))
    last = ((use, last_assigned(index, use)) for use in behind if isinstance(use, ast.Name))
    found: list[ast.expr] = [use for use, binding in last if binding is None or binding.node is statement]
    for use in found:  # grows: a function of the file may hand it on
        found += (each for each in read_as_parameter(index, use) if each not in found)
    return found


def _member(index: ModuleIndex, node: ast.AST) -> str:
    """The method of an expression that is called, or ``__call__``; empty where none is."""
    sink = taken_by(index, node)
    return {"method": sink.name, "called": "__call__"}.get(sink.kind, "")


def _members(index: ModuleIndex, node: Optional[ast.AST], but: Sequence[str] = ()) -> Iterator[str]:
    """The methods that are called on an expression, behind ``x or y`` and ``.to(device)`` as well."""
    while node is not None:
        parent = index.parent(node)
        if isinstance(parent, ast.BoolOp):
            node = parent
            continue
        member = _member(index, node)
        if member and member not in but:
            yield member
        node = index.parent(parent) if member == "to" and parent is not None else None


def _key(index: ModuleIndex, node: ast.expr) -> str:
    """The key that is asked for: ``x["key"]``, ``x.get("key")``, ``"key" in x``."""
    parent = index.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return string_value(parent.slice) or ""
    if isinstance(parent, ast.Compare) and node in parent.comparators:
        return string_value(parent.left) or ""
    sink = taken_by(index, node)
    asked = sink.holder.args[:1] if sink.name in ("get", "pop") and isinstance(sink.holder, ast.Call) else []
    return next(filter(None, map(string_value, asked)), "") if sink.kind == "method" else ""


def find_map_locations(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``map_location`` of ``torch.load`` before 2.1: torch_npu makes a string of it, and calls no function.

    One that keeps storages on the CPU becomes ``"cpu"``.
    """
    index, current = context.index, context.project.offers.names(SET_DEVICE)
    for call, api in context.calls_of(rule):
        place = argument_of(call, "map_location", 1 if api == "torch.load" else 2)
        if not isinstance(place, ast.Lambda) or not place.args.args:
            continue
        body, storage = place.body, place.args.args[0].arg
        moved = body if isinstance(body, ast.Call) and bare_name(holder_of(body)) == storage else None
        if bare_name(body) == storage or called_name(moved) == "cpu":
            yield found(context, rule, place, api=api, edits=[instead_of(index, place, '"cpu"')])
            continue
        to_current = moved is not None and all(index.segment(each) in current for each in moved.args)
        if called_name(moved) not in ("cuda", "npu") or not to_current:  # there they go anyway
            yield found(context, rule, place, api=api)
