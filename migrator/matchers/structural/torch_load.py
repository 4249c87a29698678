"""Checkpoints that are loaded: without ``map_location``, and without ``weights_only`` since torch 2.6."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.kinds.argument import added_argument
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, called_name, elements, hands_on, last_name, string_value
from migrator.project.saved_objects import Saved, is_module_name, is_options_name


@dataclass(frozen=True)
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
        if any(hints.search(words) for words in _words_beside(context, call)):
            edits = added_argument(context.index, call, "map_location", '"cpu"')
            if _saves_modules(_saved(context)) and _stays(context.index, call):
                edits = []  # the program's own file has it on the NPU, where it is used
            yield found(context, rule, call, api=api, edits=edits)


def _saved(context: FileContext) -> list[Saved]:
    """What the project saves beside tensors and plain values."""
    saved = context.project.program.saved
    return context.index.once(("saved",), lambda: [Saved.from_text(each) for each in sorted(saved)])


def _saves_modules(saved: list[Saved]) -> bool:
    """Whether whole modules are saved, as they are."""
    return any(not item.key and "module" in item.what for item in saved)


def _stays(index: ModuleIndex, call: ast.Call) -> bool:
    """Whether a whole module is loaded, by its name, that nothing moves afterwards."""
    targets = _targets(index, call)
    names = [each for target in targets for each in elements(target) or [target]]
    modules = [each for each in names if is_module_name(last_name(each))]
    uses = list(_uses(index, call))
    is_state = any(_is_state(index, use) for use in (call, *uses))
    return bool(modules) and not is_state and not any(_member(index, use) in _MOVES for use in uses)


def _words_beside(context: FileContext, call: ast.Call) -> Iterator[str]:
    """The path, the targets of the assignment, the calls and the function around."""
    index = context.index
    yield from map(index.segment, call.args)
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
_DECIDES = ("weights_only", "pickle_module")
# Functions that ask for an attribute of an object.
_OF_OBJECTS = ("vars", "getattr", "setattr")


@dataclass(frozen=True)
class WeightsOptions(Options):
    """``module_members``: what only a whole module is asked for, no state of one.

    ``object_members``: what only objects of some libraries have. ``paths``: words of a path under which the
    datasets of a package keep objects.
    """

    module_members: tuple[str, ...] = ()
    object_members: tuple[str, ...] = ()
    paths: dict[str, str] = field(default_factory=dict)


def find_without_pickle(context: FileContext, rule: Rule[WeightsOptions]) -> Iterator[Match]:
    """Loads of files that hold more than tensors and plain values, which torch reads since 2.6.

    The project writes them, or a module is read from them.
    """
    for call, api in context.calls_of(rule):
        if hands_on(call) or len(call.args) > 2 or any(each.arg in _DECIDES for each in call.keywords):
            continue
        if _is_second_try(context.index, call):
            continue
        why = _held(context.index, rule, call, _saved(context))
        if why:
            edits = added_argument(context.index, call, "weights_only", "False")
            message = _("{api} reads tensors and plain values only, since torch 2.6; {why}", api=api, why=why)
            yield found(context, rule, call, api=api, edits=edits, message=message)


def _held(index: ModuleIndex, rule: Rule[WeightsOptions], call: ast.Call, saved: list[Saved]) -> str:
    """What the file holds beside that, as a clause; empty where nothing says so."""
    keys = _keys_of_attribute(index, call)
    uses = list(_uses(index, call))
    uses += _given_back(index, call, uses)
    is_object = ""
    for use in (call, *uses):
        member = _member(index, use)
        if member in rule.options.module_members and not _is_asked_first(index, call, use):
            return _("a module is read here (.{member})", member=member)
        asked = getattr(index.parent(use), "attr", "")
        if asked in rule.options.object_members and not _is_asked_first(index, call, use):
            is_object = _("an object is read here (.{member})", member=asked)
        key = _key(index, use)
        if key:
            keys.add(key)
            if is_options_name(key) and (member := _asked_of_options(index, use)):
                is_object = _('"{key}" is an object here (.{member})', key=key, member=member)
            for member in _members(index, index.parent(use)):
                if member in rule.options.module_members:
                    return _('"{key}" is a module here (.{member})', key=key, member=member)
    for item in saved:
        if item.key and keys & item.keys:
            return _('the project saves "{key}" in such files, {what}', key=item.key, what=_(item.what))
    if is_object:
        return is_object
    package = _package_of_path(index, rule, call)
    if package:
        return _("datasets of {package} keep objects there", package=package)
    names = uses or ([] if keys else _targets(index, call))
    unpacked = [each for name in names for each in elements(name)]
    if any(is_module_name(last_name(each)) for each in unpacked) and any(not item.key for item in saved):
        return _("the project saves whole modules")
    if names and _saves_modules(saved):
        if all(is_module_name(last_name(each)) and not _is_state(index, each) for each in names):
            return _("the project saves whole modules")
    return ""


def _asked_of_options(index: ModuleIndex, use: ast.expr) -> str:
    """What options under a key are asked for that only an object has, no dictionary: ``x["args"].lr``."""
    read = index.parent(use)
    if isinstance(read, ast.Attribute):
        read = index.call_of(read)  # x.get("args")
    given = index.parent(read) if read is not None else None
    held = given.targets[0] if isinstance(given, ast.Assign) and given.value is read else None
    if isinstance(held, ast.Attribute):
        found = re.findall(rf"(?<![\w.]){re.escape(ast.unparse(held))}\.(\w+)", index.text)
        return next((each for each in found if not hasattr({}, each)), "")
    for each in (read, *(index.uses_of(held) if isinstance(held, ast.Name) else ())):
        around = index.parent(each) if each is not None else None
        if isinstance(around, ast.Attribute) and around.value is each and not hasattr({}, around.attr):
            return around.attr
        if isinstance(around, ast.Call) and around.args[:1] == [each] and called_name(around) in _OF_OBJECTS:
            return _written_name(around) or "__dict__"
    return ""


def _written_name(call: ast.Call) -> str:
    """The attribute that ``getattr`` or ``setattr`` names; empty where that is no constant."""
    return (string_value(call.args[1]) or "") if len(call.args) > 1 else ""


def _package_of_path(index: ModuleIndex, rule: Rule[WeightsOptions], call: ast.Call) -> str:
    """The package whose datasets keep objects where a path leads."""
    path = call.args[0] if call.args else None
    values = [path, *(index.assigned(path) if isinstance(path, ast.Name) else ())]
    text = " ".join(index.segment(each) for each in values if each is not None)
    named = (package for word, package in rule.options.paths.items() if word in text)
    return next((package for package in named if package in index.text), "")


def _targets(index: ModuleIndex, call: ast.Call) -> list[ast.expr]:
    """What a call is assigned to."""
    statement = index.parent(call)
    return statement.targets if isinstance(statement, ast.Assign) else []


def _keys_of_attribute(index: ModuleIndex, call: ast.Call) -> set[str]:
    """The keys that are asked of what a call is assigned to, where that is ``self.checkpoint``."""
    targets = _targets(index, call)
    written = [re.escape(ast.unparse(each)) for each in targets if isinstance(each, ast.Attribute)]
    return {key for each in written for key in re.findall(rf"{each}\[[\"'](\w+)[\"']\]", index.text)}


def _is_state(index: ModuleIndex, use: ast.expr) -> bool:
    """Whether something is asked for by its key, or given to load_state_dict."""
    return bool(_key(index, use)) or called_name(index.parent(use)) == "load_state_dict"


def _is_second_try(index: ModuleIndex, call: ast.Call) -> bool:
    """Whether a load stands behind one with ``weights_only`` that an old torch does not take."""
    return any(
        isinstance(each, ast.ExceptHandler) and "weights_only" in index.segment(index.parent(each) or each)
        for each in index.above(call)
    )


def _is_asked_first(index: ModuleIndex, call: ast.Call, use: ast.expr) -> bool:
    """Whether a condition behind the load stands before a use of what was loaded."""
    around = set(map(id, index.above(call)))
    return any(isinstance(each, (ast.If, ast.IfExp)) and id(each) not in around for each in index.above(use))


def _uses(index: ModuleIndex, call: ast.Call) -> Iterator[ast.expr]:
    """Where the name that a call is assigned to is used, behind it and before something else is assigned."""
    statement = index.parent(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield from (use for use in index.uses_of(target) if index.start(use) > index.end(statement))


def _given_back(index: ModuleIndex, call: ast.Call, uses: list[ast.expr]) -> Iterator[ast.expr]:
    """What the file does with what a function gives back that only reads a file."""
    function = index.function_of(call)
    values = index.returned(function) if function is not None else []
    if function is not None and any(value is call or value in uses for value in values):
        for use in index.uses_of(function):
            given = index.call_of(use)
            if given is not None:
                yield from (given, *_uses(index, given))


def _member(index: ModuleIndex, node: Optional[ast.AST]) -> str:
    """The method of an expression that is called, empty where none is."""
    parent = index.parent(node) if node is not None else None
    if isinstance(parent, ast.Attribute) and parent.value is node and index.call_of(parent) is not None:
        return parent.attr
    return ""


def _members(index: ModuleIndex, node: Optional[ast.AST]) -> Iterator[str]:
    """The methods that are called on an expression, behind ``x or y`` and ``.to(device)`` as well."""
    while node is not None:
        parent = index.parent(node)
        if isinstance(parent, ast.BoolOp):
            node = parent
            continue
        member = _member(index, node)
        if member:
            yield member
        node = index.parent(parent) if member == "to" and parent is not None else None


def _key(index: ModuleIndex, node: ast.expr) -> str:
    """The key that is asked for: ``x["key"]``, ``x.get("key")``, ``"key" in x``."""
    parent = index.parent(node)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return string_value(parent.slice) or ""
    if isinstance(parent, ast.Compare) and node in parent.comparators:
        return string_value(parent.left) or ""
    if _member(index, node) in ("get", "pop"):
        asking = index.parent(parent) if parent is not None else None
        return (string_value(asking.args[0]) or "") if isinstance(asking, ast.Call) and asking.args else ""
    return ""
