"""Whether an expression has just been put on the CPU, as the expression itself shows."""

from __future__ import annotations

import ast

from migrator.names.device_vocabulary import is_cpu
from migrator.names.index import ModuleIndex

# Functions of torch that make a tensor on the CPU where no device is named.
_FACTORIES = frozenset(
    "torch.arange torch.empty torch.eye torch.from_numpy torch.full torch.linspace torch.ones torch.rand"
    " torch.randint torch.randn torch.tensor torch.zeros torch.Tensor".split()
)


def on_the_cpu(node: ast.expr) -> bool:
    """Whether an expression has just been moved to the CPU: ``x.detach().cpu()``."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "cpu" or (node.func.attr == "to" and _says_cpu(node)):
                return True
            if node.func.attr in ("cuda", "npu", "to"):
                return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def kept_on_the_cpu(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether an expression, or all that its name is assigned, has just been moved to the CPU."""
    return all(map(on_the_cpu, values)) if (values := _given(index, node)) else False


def made_on_the_cpu(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether an expression, or all that its name is assigned, was moved to the CPU or made there."""
    values = _given(index, node)
    return bool(values) and all(on_the_cpu(value) or _is_made(index, value) for value in values)


def is_cpu_device(index: ModuleIndex, device: ast.expr | None) -> bool:
    """Whether a device is written as the CPU: ``"cpu"``, ``torch.device("cpu")``."""
    if isinstance(device, ast.Call) and index.qualified_name(device.func) == "torch.device":
        return _says_cpu(device)
    return is_cpu(device)


def _given(index: ModuleIndex, node: ast.expr) -> list[ast.expr]:
    """An expression, or what its name is assigned; nothing where something else binds the name, too.

    What a name is made of itself, and not moved by, says nothing new: ``x = x.to(memory_format=…)``.
    """
    if not isinstance(node, ast.Name):
        return [node]
    return [value for value in index.only_assigned(node) if not _is_of_itself(value, node.id)]


def _is_of_itself(value: ast.expr, name: str) -> bool:
    """Whether a value is that of a name behind calls of its methods that move nothing."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        moves = value.func.attr in ("cuda", "npu", "cpu", "to_empty")
        if moves or any(keyword.arg in ("device", None) for keyword in value.keywords):
            return False
        if value.func.attr in ("to", "type") and value.args:
            return False
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name


def _is_made(index: ModuleIndex, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or index.qualified_name(value.func) not in _FACTORIES:
        return False
    return not any(keyword.arg in ("device", None) for keyword in value.keywords)


def _says_cpu(call: ast.Call) -> bool:
    return bool(call.args) and is_cpu(call.args[0])
