"""Code that has met NPUs before: it has a case of its own for them beside the one for CUDA."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.names.hints import last_name
from migrator.names.index import ModuleIndex

# The word first, then what is before it: a search for plain text is fast, and most files speak of input.
_NPU_WORD = re.compile(r"npu(?<![^\W_]npu)(?![^\W\d_])")
_CUDA_BUILD = re.compile(r"\bCUDAExtension\b|\bCUDA_HOME\b|\bnvcc\b|\.cu\b")
_NVIDIA = re.compile(r"nvidia|hopper|ampere|blackwell", re.IGNORECASE)
_QUESTIONS = frozenset({"is_available", "device_count"})


def knows_npus(text: str) -> bool:
    """Whether a text speaks of NPUs at all."""
    lower = text.lower()
    return "hccl" in lower or "ascend" in lower or bool(_NPU_WORD.search(lower))


def has_own_npu_case(index: ModuleIndex, node: Any) -> bool:
    """Whether a place is the CUDA branch of code that also has a branch for NPUs.

    That is: another test of the same if-chain or conditional expression, or an
    earlier ``if …: return`` of the same block, speaks of NPUs, or another ``if``
    of the block does the same for them. Or the place is a comparison that another
    one of the block makes with an NPU's name.
    """
    child, parent = node, index.parent(node)
    while parent is not None:
        if isinstance(parent, ast.Compare) and _compared_with_npu(index, parent):
            return True
        if isinstance(parent, ast.IfExp):
            if child is not parent.body and child is not parent.test and _speaks_of_npus(parent.test):
                return True
        elif isinstance(parent, ast.If):
            if _in_chain(index, parent, child) or (child not in parent.orelse and _has_twin(index, parent)):
                return True
        if isinstance(child, ast.stmt) and _after_npu_return(parent, child):
            return True
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        child, parent = parent, index.parent(parent)
    return False


def patches_cuda(index: ModuleIndex, node: Any) -> bool:
    """Whether a place patches ``torch.cuda``: ``torch.cuda.graph = torch.npu.graph``."""
    return isinstance(getattr(node, "ctx", None), ast.Store) and index.qualified_name(node).startswith(
        "torch.cuda."
    )


def is_flag_for_nvidia(index: ModuleIndex, node: Any) -> bool:
    """Whether a comparison's outcome gets a name that says NVIDIA: ``IS_NVIDIA = platform == "cuda"``."""
    child, parent = node, index.parent(node)
    while isinstance(parent, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        child, parent = parent, index.parent(parent)
    if child is node:
        return False
    if isinstance(parent, ast.Return):
        while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parent = index.parent(parent)
        return parent is not None and bool(_NVIDIA.search(parent.name))
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    return any(_NVIDIA.search(last_name(target)) for target in targets)


def _compared_with_npu(index: ModuleIndex, compare: ast.Compare) -> bool:
    """Whether ``IS_NPU = platform == "npu"`` stands in the same block as ``IS_CUDA = platform == "cuda"``."""
    statement: Any = index.parent(compare)
    while isinstance(statement, (ast.BoolOp, ast.UnaryOp)):
        statement = index.parent(statement)
    if not isinstance(statement, ast.Assign):
        return False
    compared = ast.dump(compare.left)
    return any(
        isinstance(inner, ast.Compare) and ast.dump(inner.left) == compared and _speaks_of_npus(inner)
        for other in getattr(index.parent(statement), "body", ())
        if isinstance(other, ast.Assign) and other is not statement
        for inner in ast.walk(other.value)
    )


def guards_cuda_build(index: ModuleIndex, node: Any) -> bool:
    """Whether a question for a CUDA card decides that CUDA sources are compiled."""
    if not isinstance(node, ast.Attribute) or node.attr not in _QUESTIONS:
        return False
    child, parent = node, index.parent(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        child, parent = parent, index.parent(parent)
    if not isinstance(parent, ast.If) or child is not parent.test:
        return False
    first, last = parent.body[0], parent.body[-1]
    body = index.data[index.start(first) : index.end(last)].decode("utf-8")
    return bool(_CUDA_BUILD.search(body))


def _in_chain(index: ModuleIndex, holder: ast.If, child: Any) -> bool:
    """Whether ``child`` is in one branch of an if-chain and a test of another branch speaks of NPUs."""
    if child in holder.orelse:
        if len(holder.orelse) == 1 and isinstance(holder.orelse[0], ast.If):
            return False  # an elif: the chain is looked at from there
        return _speaks_of_npus(holder.test) or any(
            _speaks_of_npus(test) for test in _tests_above(index, holder)
        )
    others = _tests_above(index, holder)
    following = holder.orelse
    while len(following) == 1 and isinstance(following[0], ast.If):
        others.append(following[0].test)
        following = following[0].orelse
    return any(_speaks_of_npus(test) for test in others)


def _has_twin(index: ModuleIndex, holder: ast.If) -> bool:
    """Whether another ``if`` of the block does for NPUs, name by name, what this one does for CUDA."""
    block = index.parent(holder)
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(block, field, None)
        if isinstance(statements, list) and holder in statements:
            others = [each for each in statements if isinstance(each, ast.If) and each is not holder]
            others = [each for each in others if _speaks_of_npus(each.test)]
            return bool(others) and _as_for_cuda(holder) in [_as_for_cuda(each) for each in others]
    return False


def _as_for_cuda(holder: ast.If) -> str:
    text = " ".join(ast.dump(statement) for statement in holder.body).lower()
    return text.replace("npu", "cuda").replace("hccl", "nccl")


def _tests_above(index: ModuleIndex, holder: ast.If) -> list[Any]:
    tests = []
    parent: Any = index.parent(holder)
    while isinstance(parent, ast.If) and parent.orelse == [holder]:
        tests.append(parent.test)
        holder, parent = parent, index.parent(parent)
    return tests


def _after_npu_return(parent: Any, child: Any) -> bool:
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(parent, field, None)
        if isinstance(statements, list) and child in statements:
            for earlier in statements[: statements.index(child)]:
                if isinstance(earlier, ast.If) and _speaks_of_npus(earlier.test) and not earlier.orelse:
                    if isinstance(earlier.body[-1], (ast.Return, ast.Raise, ast.Continue)):
                        return not isinstance(earlier.body[-1], ast.Raise)
    return False


def _speaks_of_npus(test: Any) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and knows_npus(node.attr):
            return True
        if isinstance(node, ast.Name) and knows_npus(node.id):
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and knows_npus(node.value):
            return True
    return False


def beside_npu(index: ModuleIndex, node: Any) -> bool:
    """Whether a list, a dictionary, an enumeration or a chain of conditions also has a case for NPUs."""
    child, parent = node, index.parent(node)
    around: list[Any] = []
    if isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        around = list(parent.elts)
    elif isinstance(parent, ast.Dict) and (child in parent.keys or _under_cuda_key(parent, child)):
        around = [key for key in parent.keys if key is not None]
    elif isinstance(parent, ast.Assign) and isinstance(index.parent(parent), ast.ClassDef):
        around = [item.value for item in index.parent(parent).body if isinstance(item, ast.Assign)]
    return any(
        isinstance(item, ast.Constant)
        and isinstance(item.value, str)
        and item.value.partition(":")[0].lower() in ("npu", "hccl")
        for item in around
    )


def _under_cuda_key(node: ast.Dict, value: Any) -> bool:
    if value not in node.values:
        return False
    key = node.keys[node.values.index(value)]
    return isinstance(key, ast.Constant) and key.value == "cuda"
