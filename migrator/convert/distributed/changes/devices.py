"""One device for each rank: places that name a device's number mean the rank's own device instead."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.draft import Draft, UncertainError
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, method_name
from migrator.language import N_, _
from migrator.names.tree import arguments_of

_NUMBERED = re.compile(r"cuda:(\d+)$")
_LOCAL_RANK = 'int(os.environ.get("LOCAL_RANK", 0))'
_MESSAGE = N_("the device is the rank's own")


def use_own_device(program: Program, draft: Draft) -> None:
    """Plan it for the whole program. Raises UncertainError where it uses several devices."""
    numbers: dict[str, tuple[File, Any]] = {}
    for file, node in program.nodes(ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call, ast.Assign):
        for number in _plan(draft, file, node):
            numbers.setdefault(number, (file, node))
    if len(numbers) > 1:
        file, node = list(numbers.values())[1]
        raise UncertainError("several_devices", file, node)


def _plan(draft: Draft, file: File, node: ast.AST) -> list[str]:
    """The change at a node; gives the number of the device that it names, as it is written."""
    if isinstance(node, ast.Assign):
        _visible_devices(draft, file, node)
        return []
    if isinstance(node, ast.Call):
        return _call(draft, file, node)
    if isinstance(file.parent(node), (ast.JoinedStr, ast.FormattedValue, ast.Expr)):
        return []
    number = _device_string(file, node)
    if not number:
        return []
    draft.replace(file, node, '"cuda"', _(_MESSAGE))
    return [number]


def _device_string(file: File, node: ast.AST) -> str:
    """The number in ``"cuda:0"``, ``f"cuda:{gpu}"``, ``"cuda:%d" % gpu`` and ``"cuda:" + str(gpu)``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        match = _NUMBERED.match(node.value)
        return match.group(1) if match else ""
    if isinstance(node, ast.JoinedStr) and len(node.values) == 2:
        before, value = node.values
        if getattr(before, "value", "") == "cuda:" and isinstance(value, ast.FormattedValue):
            return file.index.segment(value.value) if file.index.segment(value.value) else "?"
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
        if isinstance(node.op, ast.Mod) and node.left.value in ("cuda:%d", "cuda:%s"):
            return file.index.segment(node.right)
        if isinstance(node.op, ast.Add) and node.left.value == "cuda:":
            return file.index.segment(node.right).removeprefix("str(").rstrip(")")
    return ""


def _call(draft: Draft, file: File, node: ast.Call) -> list[str]:
    name = file.called(node)
    given = arguments_of(node)
    if name in ("torch.cuda.set_device", "torch.cuda.device") and len(given) == 1:
        if file.index.segment(given[0]) == _LOCAL_RANK:
            return []
        number = file.index.segment(given[0])
        draft.replace(file, given[0], _LOCAL_RANK)
        draft.of(file).imports.append("import os")
        draft.changed(file, node, _(_MESSAGE))
        return [number] if not _holds_string(given[0]) and not dotted(given[0]).endswith("device") else []
    if name == "torch.device" and len(given) == 2 and getattr(given[0], "value", "") == "cuda":
        draft.change_arguments(file, node, [1], [])
        draft.changed(file, node, _(_MESSAGE))
        return [file.index.segment(given[1])]
    moves = method_name(node)
    named = next((place for place, one in enumerate(node.keywords) if one.arg == "device"), None)
    place = 0 if node.args else None if named is None else named
    if moves in ("cuda", "to") and name != "torch.cuda" and place is not None:
        device = given[place]
        number = file.index.segment(device)
        if moves == "cuda" and not _holds_string(device):
            draft.change_arguments(file, node, [place], [])
            draft.changed(file, node, _(_MESSAGE))
            return [number] if isinstance(device, ast.Constant) else []
        if isinstance(device, ast.Constant) and type(device.value) is int:
            draft.replace(file, device, '"cuda"')
            draft.changed(file, node, _(_MESSAGE))
            return [number]
    return []


def _holds_string(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in ast.walk(node)
    )


def _visible_devices(draft: Draft, file: File, node: ast.Assign) -> None:
    target = node.targets[0]
    if not isinstance(target, ast.Subscript) or "CUDA_VISIBLE_DEVICES" not in ast.dump(target.slice):
        return
    if file.index.qualified_name(target.value) != "os.environ":
        return
    if file.is_alone(node) or not file.own_line(node):
        raise UncertainError("visible_devices", file, node)
    draft.of(file).removed.add(node)
    draft.changed(file, node, _("the launcher chooses the devices (--devices)"), "DELETE")
