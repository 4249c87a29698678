"""Where a value goes: into a device, a dictionary key, a message?

``judge`` climbs from an expression to the place that decides what it is. The
lists of APIs and names that it goes by are data (``rules/device_strings.yaml``).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from migrator.names.hints import (
    PlaceData,
    asks_for_cuda,
    beside_a_device,
    called_name,
    chosen_beside_cpu,
    has_cpu,
    last_name,
    says_device,
    works_with_foreign,
)
from migrator.names.index import ModuleIndex
from migrator.names.npu_branches import beside_npu

_TEXT_METHODS = frozenset(
    "startswith endswith removeprefix removesuffix replace split rsplit partition find index lstrip"
    " strip".split()
)
# Calls that compare their first two arguments.
_COMPARISONS = frozenset(
    "assertEqual assertEquals assertNotEqual assertIn assertNotIn assertIs assert_equal assert_in".split()
)
CERTAIN, LIKELY, UNCLEAR, NO = "certain", "likely", "unclear", "no"


@dataclass(frozen=True)
class Place:
    """A verdict and the reason for it, in words that a report can print.

    ``api`` is the called name where an argument decided.
    """

    verdict: str
    reason: str
    api: str = ""


def judge(index: ModuleIndex, data: PlaceData, node: Any, depth: int = 0) -> Place:
    """Where the value of ``node`` goes.

    A value that stands beside ``"npu"`` is left alone: that program has met
    NPUs before, and knows its CUDA branch from its NPU branch.
    """
    place = _climb(index, data, node, depth)
    handed_on = place.verdict == NO and place.reason.startswith("an argument of")
    if (handed_on or place.verdict in (LIKELY, UNCLEAR)) and chosen_beside_cpu(index, node):
        place = Place(CERTAIN, "chosen where there is a card, and else cpu", place.api)
    if place.verdict == LIKELY and depth == 0 and (library := works_with_foreign(index, data, node)):
        place = Place(UNCLEAR, f"in code that works with {library}, whose devices are not torch's", place.api)
    if place.verdict in (CERTAIN, LIKELY, UNCLEAR) and depth == 0 and beside_npu(index, node):
        return Place(NO, "beside a case of its own for NPUs")
    return place


def _climb(index: ModuleIndex, data: PlaceData, node: Any, depth: int) -> Place:
    siblings: list[Any] = []
    child = came_from = node
    while True:
        parent = index.parent(child)
        if parent is None or isinstance(parent, ast.Module):
            return Place(NO, "text of its own")
        if isinstance(parent, ast.IfExp):
            if child is parent.test:
                return Place(NO, "a condition")
            siblings += [parent.body, parent.orelse]
            if asks_for_cuda(parent.test):
                siblings.append(parent.test)
        elif isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
            siblings += parent.elts
        elif isinstance(parent, (ast.BoolOp, ast.Starred, ast.Await)):
            if isinstance(parent, ast.BoolOp):
                siblings += parent.values
        elif isinstance(parent, ast.JoinedStr):
            if not _begins_text(index, parent, child):
                return Place(UNCLEAR, "a part of a longer text")
        elif isinstance(parent, ast.BinOp):
            if child is parent.right and isinstance(parent.op, ast.Add) and not isinstance(child, ast.BinOp):
                return Place(UNCLEAR, "the end of a longer text")
        elif isinstance(parent, ast.Lambda):
            if child is not parent.body:
                return Place(UNCLEAR, "a lambda's default")
        elif isinstance(parent, ast.NamedExpr):
            return _target(index, data, parent.target, siblings, depth)
        elif isinstance(parent, ast.keyword):
            outcome = _keyword(index, data, parent, siblings, depth)
            if outcome is not None:
                return outcome
            parent = index.parent(parent)  # the keyword's call: its value flows on
        elif isinstance(parent, ast.Call):
            outcome = _argument(index, data, parent, child, siblings, depth)
            if outcome is not None:
                return outcome
        elif isinstance(parent, ast.Attribute):
            call = index.call_of(parent)
            if call is None:
                return Place(UNCLEAR, "an attribute of it is read")
            if parent.attr not in ("format", "lower", "upper", "strip"):
                return Place(UNCLEAR, f"its method {parent.attr}() is called")
            parent = call
        elif isinstance(parent, ast.Compare):
            return _compare(data, [parent.left, *parent.comparators], child)
        elif isinstance(parent, ast.Dict):
            outcome = _dictionary(index, data, parent, child, depth)
            if outcome is not None:
                return outcome
        elif isinstance(parent, ast.Subscript):
            if child is parent.slice:
                return _subscript(index, data, parent, siblings)
            if child is not parent.value:
                return Place(UNCLEAR, "part of an index")
        elif isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets: list[Any] = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            if isinstance(child, ast.Tuple) and isinstance(targets[0], ast.Tuple):
                for element, value in zip(targets[0].elts, child.elts):
                    if value is came_from:
                        return _target(index, data, element, [], depth)
            if isinstance(parent, ast.AnnAssign) and child is parent.annotation:
                return _hinted(data, last_name(parent.target), siblings, "an annotation")
            if isinstance(parent, ast.AnnAssign):
                siblings += [item for item in ast.walk(parent.annotation) if isinstance(item, ast.Constant)]
            return _target(index, data, targets[0], siblings, depth)
        elif isinstance(parent, ast.AugAssign):
            name = last_name(parent.target)
            return _hinted(data, name, siblings, f"what is added to {name or 'a variable'}")
        elif isinstance(parent, ast.Return):
            function = index.function_of(parent)
            owner = index.class_of(parent)
            name = function.name if function is not None else ""
            if owner is not None and name in ("name", "type", "get_name", "kind"):
                name = f"{owner.name} {name}"
            return _hinted(data, name, siblings, f"what {name}() returns", _returns(function))
        elif isinstance(parent, (ast.For, ast.AsyncFor)):
            if child is parent.iter:
                return _target(index, data, parent.target, siblings, depth)
            return Place(UNCLEAR, "a loop")
        elif isinstance(parent, ast.comprehension):
            return _hinted(data, last_name(parent.target), siblings, "the values of a loop")
        elif isinstance(parent, ast.arguments):
            return _default(index, data, parent, child, siblings, depth)
        elif isinstance(parent, ast.arg):
            return _hinted(data, parent.arg, siblings, f"the annotation of {parent.arg}")
        elif parent.__class__.__name__ in ("MatchValue", "MatchOr"):
            if parent.__class__.__name__ == "MatchValue":
                return _match_case(index, data, index.statement_of(parent), parent)
        elif isinstance(parent, ast.Expr):
            return Place(NO, "a text that nobody reads")
        else:
            return Place(UNCLEAR, "a place that is not known")
        came_from, child = child, parent


def _begins_text(index: ModuleIndex, text: Any, field: Any) -> bool:
    """Whether a field begins an f-string, and ends it or is followed by a colon."""
    parts = index.parts(text)
    if not parts or parts[0].expression is not field:
        return False
    return len(parts) == 1 or parts[1].expression is not None or parts[1].raw.startswith(":")


def _hinted(data: PlaceData, name: str, siblings: list[Any], where: str, more: tuple[Any, ...] = ()) -> Place:
    if any(asks_for_cuda(node) for node in siblings) and has_cpu([*siblings, *more]):
        return Place(CERTAIN, f"{where}: the choice between a card and the CPU")
    if name and data.hint.search(name):
        return Place(LIKELY, f"{where}, whose name says device")
    if beside_a_device([*siblings, *more]):
        return Place(LIKELY, f"{where}, beside another device")
    return Place(UNCLEAR, where)


def _target(index: ModuleIndex, data: PlaceData, target: Any, siblings: list[Any], depth: int) -> Place:
    """What is assigned is what its name is used for, as far as this module shows it."""
    if isinstance(target, ast.Name) and depth < 2:
        owner = index.scope_of(target).owner(target.id)
        if owner is not None:
            found = [judge(index, data, use, depth + 1) for use in index.uses(target.id, owner)]
            verdicts = [place.verdict for place in found]
            if CERTAIN in verdicts and set(verdicts) <= {CERTAIN}:
                return Place(CERTAIN, f"{target.id} goes only where a device is expected", found[0].api)
            if CERTAIN in verdicts:
                return Place(LIKELY, f"{target.id} is used as a device")
            if LIKELY in verdicts and UNCLEAR not in verdicts:
                return Place(LIKELY, f"{target.id} seems to be used as a device")
    return _hinted(data, last_name(target), siblings, f"the value of {last_name(target) or 'a variable'}")


def _keyword(
    index: ModuleIndex, data: PlaceData, keyword: Any, siblings: list[Any], depth: int
) -> Place | None:
    call, name = index.parent(keyword), keyword.arg or ""
    called = called_name(call)
    if not isinstance(call, ast.Call):
        return Place(UNCLEAR, "a class's keyword")
    if called in data.option_calls and name in (
        "default",
        "choices",
        "const",
        "default_factory",
        "value",
        "type",
    ):
        return _option(index, data, call, siblings, depth)
    qualified = index.qualified_name(call.func)
    if qualified.partition(".")[0] in data.foreign:
        return Place(UNCLEAR, f"an argument of {qualified}(), which is not torch's")
    places = data.apis.get(qualified) or data.apis.get(f".{called}")
    if places is not None and name in places:
        return Place(CERTAIN, f"{called}({name}=…)", name)
    if name in data.keywords:
        certain = qualified.startswith("torch.") or called in ("to", "new_tensor", "new_zeros", "new_empty")
        return Place(CERTAIN if certain else LIKELY, f"{called or 'a call'}({name}=…)", name)
    if called in data.never:
        return Place(NO, f"an argument of {called}()")
    return _hinted(data, name, siblings, f"the argument {name} of {called or 'a call'}()")


def _argument(
    index: ModuleIndex, data: PlaceData, call: ast.Call, child: Any, siblings: list[Any], depth: int
) -> Place | None:
    """A positional argument; None where the call hands the value on."""
    if child not in call.args:
        return None  # the value of the call that was climbed through
    position = call.args.index(child)
    called = called_name(call)
    qualified = index.qualified_name(call.func)
    if qualified.partition(".")[0] in data.foreign:
        return Place(UNCLEAR, f"an argument of {qualified}(), which is not torch's")
    places = data.apis.get(qualified) or data.apis.get(f".{called}")
    if places is not None and (position in places or "*" in places):
        return Place(CERTAIN, f"{called}(…)", called)
    if qualified.startswith("torch.cuda.") and position == 0:
        return Place(CERTAIN, f"{called}(…)")
    if called in data.option_calls:
        return _option(index, data, call, siblings, depth) if position or called == "Option" else None
    if called in _COMPARISONS and position < 2:
        return _compare(data, call.args[:2], child)
    if is_pattern(index, child) and says_device(data, call.args[1]):
        return Place(CERTAIN, "a pattern for a device's name")
    if called in _TEXT_METHODS and isinstance(call.func, ast.Attribute):
        if says_device(data, call.func.value):
            return Place(CERTAIN, "a part of a device's name")
        return Place(UNCLEAR, "a part of some text")
    if called in ("add", "append", "insert", "extend", "remove", "discard") and isinstance(
        call.func, ast.Attribute
    ):
        return _hinted(
            data, last_name(call.func.value), siblings, f"an element of {last_name(call.func.value)}"
        )
    if called in ("get", "getenv", "setdefault", "pop", "getattr", "get_attr") and position:
        key = call.args[position - 1]
        if says_device(data, key):
            return Place(LIKELY, "the default of a setting whose name says device")
        return None
    if called in ("str", "list", "tuple", "set", "frozenset", "cast", "sorted", "param", "Choice"):
        return None
    if called in ("parametrize",) and position and says_device(data, call.args[0]):
        return Place(LIKELY, "a test's parameter whose name says device")
    if called in data.never:
        return Place(NO, f"an argument of {called}()")
    parameter = _parameter(index, call, position)
    if parameter is not None:
        return _hinted(data, parameter, siblings, f"the parameter {parameter} of {called}()")
    if called and data.hint.search(called):
        return Place(LIKELY, f"an argument of {called}()")
    return Place(UNCLEAR, f"an argument of {called or 'a call'}()")


def is_pattern(index: ModuleIndex, node: Any) -> bool:
    """Whether a text is a regular expression that is looked for at once: ``re.match(text, …)``."""
    call = index.parent(node)
    return (
        isinstance(call, ast.Call)
        and called_name(call) in ("match", "fullmatch", "search")
        and len(call.args) > 1
        and call.args[0] is node
    )


def _parameter(index: ModuleIndex, call: ast.Call, position: int) -> str | None:
    """The name of the parameter that a positional argument fills, for a function of this module."""
    if not isinstance(call.func, ast.Name) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    for binding in index.bindings(call.func):
        function: Any = binding.node
        shift = 0
        if binding.kind == "class":
            function = next((f for f in function.body if getattr(f, "name", "") == "__init__"), None)
            shift = 1
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
            if position + shift < len(names):
                return names[position + shift]
    return None


def _option(index: ModuleIndex, data: PlaceData, call: ast.Call, siblings: list[Any], depth: int) -> Place:
    """The default or a choice of a command-line option or a field."""
    names = [str(a.value) for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    names += [
        str(k.value.value)
        for k in call.keywords
        if k.arg in ("dest", "name") and isinstance(k.value, ast.Constant)
    ]
    if any(data.hint.search(str(name).strip("-").replace("-", "_")) for name in names):
        return Place(LIKELY, f"an option whose name says device ({names[0]})")
    beside = [*siblings]
    for keyword in call.keywords:
        if keyword.arg in ("default", "choices"):
            beside += getattr(keyword.value, "elts", [keyword.value])
    if beside_a_device(beside):
        return Place(LIKELY, "an option that also offers other devices")
    if names:
        return Place(UNCLEAR, f"the option {names[0]}")
    return judge(index, data, call, depth)


def _compare(data: PlaceData, operands: list[Any], child: Any) -> Place:
    others = [
        operand for operand in operands if operand is not child and not isinstance(operand, ast.Constant)
    ]
    if isinstance(child, (ast.Tuple, ast.List, ast.Set)):
        elements = list(child.elts)
    else:
        elements = []
    if any(says_device(data, other) for other in others):
        return Place(CERTAIN, "compared with a device or a backend")
    if any(isinstance(other, ast.Attribute) and other.attr in ("type", "param") for other in others):
        return Place(LIKELY, "compared with a type")
    if beside_a_device(elements):
        return Place(LIKELY, "compared together with other devices")
    return Place(UNCLEAR, "a comparison")


def _match_case(index: ModuleIndex, data: PlaceData, statement: Any, node: Any) -> Place:
    match = statement
    while match is not None and match.__class__.__name__ != "Match":
        match = index.parent(match)
    if match is None:
        return Place(UNCLEAR, "a match case")
    if says_device(data, match.subject):
        return Place(CERTAIN, "a case of a device or a backend")
    cases = [case.pattern.value for case in match.cases if case.pattern.__class__.__name__ == "MatchValue"]
    if beside_a_device(cases):
        return Place(LIKELY, "a case beside other devices")
    return Place(UNCLEAR, "a match case")


def _dictionary(index: ModuleIndex, data: PlaceData, node: ast.Dict, child: Any, depth: int) -> Place | None:
    outside = judge(index, data, node, depth + 1) if depth < 2 else Place(UNCLEAR, "a dictionary")
    if child in node.values:
        key = node.keys[node.values.index(child)]
        if outside.verdict == CERTAIN:
            return outside
        if key is not None and says_device(data, key):
            return Place(LIKELY, "the value of a key that says device")
        return Place(UNCLEAR, "a dictionary's value")
    if outside.api in ("map_location", "load") or _is_map_location(index, node):
        return Place(CERTAIN, "map_location", "map_location")
    value = node.values[node.keys.index(child)]
    if index.qualified_name(value).startswith("torch.cuda."):
        return Place(LIKELY, "the key of a function of the device")
    if _looked_up_by_device(index, data, node):
        return Place(LIKELY, "a key that is looked up by a device")
    if beside_a_device([key for key in node.keys if key is not None]):
        return Place(UNCLEAR, "a dictionary's key, beside other devices")
    return Place(NO, "a dictionary's key")


def _is_map_location(index: ModuleIndex, node: Any) -> bool:
    parent = index.parent(node)
    return isinstance(parent, ast.keyword) and parent.arg == "map_location"


def _looked_up_by_device(index: ModuleIndex, data: PlaceData, node: ast.Dict) -> bool:
    places: list[Any] = [node]
    parent: Any = index.parent(node)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        target = parent.targets[0]
        owner = index.scope_of(target).owner(target.id)
        if owner is not None:
            places += index.uses(target.id, owner)
    name = last_name(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
    places += [ref for ref in index.refs if isinstance(ref, ast.Attribute) and ref.attr == name]
    for place in places:
        around = index.parent(place)
        if isinstance(around, ast.Subscript) and around.value is place:
            if not isinstance(around.slice, ast.Constant) and says_device(data, around.slice):
                return True
        if isinstance(around, ast.Attribute) and around.attr == "get":
            call = index.parent(around)
            if (
                isinstance(call, ast.Call)
                and call.args
                and not isinstance(call.args[0], ast.Constant)
                and says_device(data, call.args[0])
            ):
                return True
    return False


def _subscript(index: ModuleIndex, data: PlaceData, node: ast.Subscript, siblings: list[Any]) -> Place:
    name = last_name(node.value)
    if name == "Literal":
        around = index.parent(node)
        holder = getattr(around, "arg", "") or last_name(getattr(around, "target", None))
        return _hinted(data, holder, siblings, "a Literal")
    return Place(NO, "a key")


def _default(
    index: ModuleIndex, data: PlaceData, arguments: ast.arguments, child: Any, siblings: list[Any], depth: int
) -> Place:
    """A parameter's default is what the parameter's name says, or is used for."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults))
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None]
    for argument, default in pairs:
        if default is child:
            if depth < 2:
                scope = index.inside(index.parent(arguments))
                uses = index.uses(argument.arg, scope) if scope is not None else []
                verdicts = [judge(index, data, use, depth + 1).verdict for use in uses]
                if CERTAIN in verdicts:
                    return Place(LIKELY, f"the default of {argument.arg}, which is used as a device")
            return _hinted(data, argument.arg, siblings, f"the default of {argument.arg}")
    return Place(UNCLEAR, "a default")


def _returns(function: Any) -> tuple[Any, ...]:
    if function is None:
        return ()
    return tuple(node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value)
