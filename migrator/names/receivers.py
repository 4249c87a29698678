"""What an expression is: a tensor, a module, an object of somebody else's library?"""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.names.index import ModuleIndex

TENSOR, MODULE, FOREIGN, CLASS, UNKNOWN = "tensor", "module", "foreign", "class", "unknown"

_OPTIONS = re.compile(
    r"(?:^|_)(?:args?|argv|opts?|options?|cfg|config|conf|params|hparams?|flags|settings|namespace)$",
    re.IGNORECASE,
)


def options_like(node: Any) -> bool:
    """Whether a receiver's name says that it holds settings: ``args.cuda`` is a flag."""
    if isinstance(node, ast.Attribute):
        return bool(_OPTIONS.search(node.attr))
    if isinstance(node, ast.Call):
        return options_like(node.func) or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "parse_args"
        )
    return isinstance(node, ast.Name) and bool(_OPTIONS.search(node.id))


def receiver(index: ModuleIndex, node: Any, depth: int = 0) -> tuple[str, str]:
    """What kind of thing an expression is, and the name of its class or library.

    Looks at imports, assignments and annotations of this file; ``unknown``
    where they do not tell.
    """
    if depth > 4:
        return UNKNOWN, ""
    if isinstance(node, ast.Call):
        return _called(index, node, depth)
    if isinstance(node, ast.Subscript):
        return receiver(index, node.value, depth + 1)[0], ""
    if isinstance(node, ast.Name):
        return _named(index, node, depth)
    if isinstance(node, ast.Attribute):
        name = index.qualified_name(node)
        if name:
            return _by_name(name)
    return UNKNOWN, ""


def _by_name(name: str) -> tuple[str, str]:
    if name in ("torch.Tensor", "torch.autograd.Variable", "torch.nn.Parameter"):
        return TENSOR, name
    if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
        return MODULE, name
    if name.startswith(("torch.", "torchvision.", ".")):
        return UNKNOWN, name
    return FOREIGN, name


def _called(index: ModuleIndex, node: ast.Call, depth: int) -> tuple[str, str]:
    name = index.qualified_name(node.func)
    if name:
        if name.startswith("torch.nn.functional."):
            return TENSOR, name
        kind, full = _by_name(name)
        if kind == FOREIGN:  # an object that an unknown library made may well be a module or a tensor
            return UNKNOWN, full
        if kind == UNKNOWN and name.startswith("torch.") and name.count(".") == 1:
            return TENSOR, name
        return kind, full
    if isinstance(node.func, ast.Name):
        for binding in index.bindings(node.func):
            if binding.kind == "class":
                return CLASS, binding.node.name
    return UNKNOWN, ""


def _named(index: ModuleIndex, node: ast.Name, depth: int) -> tuple[str, str]:
    if node.id in ("self", "cls"):
        owner = index.class_of(node)
        if owner is not None:
            return CLASS, owner.name
    bindings = index.bindings(node)
    kinds: list[tuple[str, str]] = []
    for binding in bindings:
        if binding.kind == "import":
            if isinstance(binding.node, ast.Import):
                kinds.append(
                    _by_name(binding.name)
                    if not binding.name.startswith("torch")
                    else (UNKNOWN, binding.name)
                )
            else:
                kinds.append((UNKNOWN, binding.name))
        elif binding.kind == "class":
            kinds.append((CLASS, binding.node.name))
        elif binding.kind == "assign" and binding.value is not None:
            index.expand(binding.node)
            if isinstance(binding.value, ast.Name) and binding.value.id == node.id:
                continue
            if isinstance(binding.value, (ast.Name, ast.Call)):
                kinds.append(receiver(index, binding.value, depth + 1))
            else:
                kinds.append((UNKNOWN, ""))
        elif binding.kind == "param" and binding.annotation is not None:
            text = ast.unparse(binding.annotation) if hasattr(ast, "unparse") else ""
            if re.search(r"\bTensor\b", text):
                kinds.append((TENSOR, "torch.Tensor"))
            elif re.search(r"\bModule\b", text):
                kinds.append((MODULE, "torch.nn.Module"))
            else:
                kinds.append((CLASS, text.strip("'\"")))
        else:
            kinds.append((UNKNOWN, ""))
    known = {kind for kind in kinds if kind[0] != UNKNOWN}
    if len(known) == 1 and len(kinds) == len([k for k in kinds if k[0] != UNKNOWN]):
        return known.pop()
    return UNKNOWN, kinds[0][1] if kinds else ""
