"""What the names in a program say of its values, by the lists of the rule packs."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrator.names.index import ModuleIndex

_CARD_QUESTIONS = frozenset({"torch.cuda.is_available", "torch.cuda.device_count"})
_MOVES = re.compile(r"\btorch\.(?:cuda|npu|device|zeros|ones|empty|tensor|load)\b|\.(?:to|cuda|npu)\(")


@dataclass(frozen=True)
class PlaceData:
    """What the data says about places.

    ``apis`` maps a qualified API, or ``.method`` for a method of any receiver,
    to the positions and keywords that take a device. ``keywords`` are device
    keywords of any call. ``never`` are calls whose strings are something else.
    ``hint`` fits a name that says device, backend or accelerator. ``foreign``
    are packages whose devices are not torch's.
    """

    apis: Mapping[str, tuple[Any, ...]]
    keywords: frozenset[str]
    never: frozenset[str]
    option_calls: frozenset[str]
    hint: re.Pattern[str]
    foreign: frozenset[str] = field(default_factory=frozenset)


def says_device(data: PlaceData, node: Any) -> bool:
    """Whether an expression's name says that its value is a device, a device type or a backend."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            if data.hint.search(node.func.attr) or (node.func.attr == "type" and not node.args):
                return True
            if node.func.attr in ("get", "getenv", "pop") and node.args:
                return says_device(data, node.args[0])
            return says_device(data, node.func.value)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            return says_device(data, node.args[1]) or says_device(data, node.args[0])
        if isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "type") and node.args:
            return says_device(data, node.args[0])
        return isinstance(node.func, ast.Name) and bool(data.hint.search(node.func.id))
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return bool(data.hint.search(key.value))
        # A slice of a device's text is no device: "npu:0"[:4] is "npu:".
        return not isinstance(key, ast.Slice) and says_device(data, node.value)
    if isinstance(node, ast.Attribute):
        if node.attr in ("type", "name", "value"):
            return says_device(data, node.value)
        return bool(data.hint.search(node.attr))
    if isinstance(node, ast.Name):
        return bool(data.hint.search(node.id))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(data.hint.search(node.value.strip("-")))
    if isinstance(node, (ast.BoolOp,)):
        return any(says_device(data, value) for value in node.values)
    if isinstance(node, ast.NamedExpr):
        return says_device(data, node.target)
    return False


def last_name(node: Any) -> str:
    """The last name that is written in a target: an attribute, a key, a variable."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return key.value
        return last_name(node.value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return " ".join(last_name(element) for element in node.elts)
    return getattr(node, "id", "")


def asks_for_cuda(test: Any) -> bool:
    """Whether a condition asks for a card."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count")
        for node in ast.walk(test)
    )


def chosen_beside_cpu(index: ModuleIndex, node: Any) -> bool:
    """Whether a text is what a program takes where ``torch.cuda`` has a card, and ``"cpu"`` where not.

    So ``"cuda" if torch.cuda.is_available() else "cpu"``, or the same as a
    statement: once the question is about NPUs, the text has to go with it.
    """
    child = node
    while isinstance(index.parent(child), (ast.JoinedStr, ast.BinOp)):
        child = index.parent(child)
    parent = index.parent(child)
    if isinstance(parent, ast.IfExp):
        return child is parent.body and _is_cpu(parent.orelse) and _asks_torch(index, parent.test)
    if not isinstance(parent, ast.Assign):
        return False
    choice = index.parent(parent)  # set on every node of an index
    if not isinstance(choice, ast.If) or parent not in choice.body or not _asks_torch(index, choice.test):
        return False
    target = ast.dump(parent.targets[0])
    return any(
        isinstance(other, ast.Assign) and ast.dump(other.targets[0]) == target and _is_cpu(other.value)
        for other in choice.orelse
    )


def _is_cpu(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _asks_torch(index: ModuleIndex, test: Any) -> bool:
    """Whether a condition is that ``torch.cuda`` has a card: by ``is_available()`` or ``device_count()``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt):
        limit = test.comparators[0]
        if not (isinstance(limit, ast.Constant) and limit.value == 0):
            return False
        test = test.left
    return isinstance(test, ast.Call) and index.qualified_name(test.func) in _CARD_QUESTIONS


def works_with_foreign(index: ModuleIndex, data: PlaceData, node: Any) -> str:
    """The package whose devices are not torch's, where the code around a node uses it.

    That is the class, or the function, and it moves nothing of torch.
    """
    names = {
        (alias.asname or alias.name).partition(".")[0]: package
        for statement in index.imports
        for alias in statement.names
        for package in [(getattr(statement, "module", None) or alias.name).partition(".")[0]]
        if package in data.foreign
    }
    owner = names and (index.class_of(node) or index.function_of(node))
    if not owner:
        return ""
    text = index.segment(owner)
    if _MOVES.search(text):
        return ""
    words = set(re.findall(r"\w+", text))
    return next((package for name, package in names.items() if name in words), "")


def beside_a_device(siblings: list[Any]) -> bool:
    """Whether a value stands beside one that is surely a device, or beside the question for one."""
    for node in siblings:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.match(r"(cpu|mps|xpu|npu|gloo|hccl|meta)(:\d+)?$", node.value):
                return True
        elif asks_for_cuda(node):
            return True
    return False


def has_cpu(nodes: list[Any]) -> bool:
    """Whether one of some values is the device cpu."""
    return any(isinstance(node, ast.Constant) and node.value == "cpu" for node in nodes)


def called_name(call: Any) -> str:
    """The last name of what a call calls; empty where it has none."""
    function = getattr(call, "func", None)
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
