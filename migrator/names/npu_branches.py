"""NPU branches: code that has met NPUs before, and has a case for them beside the one for CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from migrator.names.index import ModuleIndex
from migrator.names.statements import LEAVING
from migrator.names.tree import FUNCTIONS, last_name, string_value, walk

# The word first, then what is before it: a search for plain text is fast, and most files speak of input.
_NPU_WORD = re.compile(r"npu(?<![^\W_]npu)(?![^\W\d_])")
_NVIDIA = re.compile(r"nvidia|hopper|ampere|blackwell", re.IGNORECASE)
_CONDITIONS = (ast.Compare, ast.BoolOp, ast.UnaryOp)


def knows_npus(text: str) -> bool:
    """Whether a text speaks of NPUs at all."""
    lower = text.lower()
    return "hccl" in lower or "ascend" in lower or bool(_NPU_WORD.search(lower))


def has_npu_branch(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is in the CUDA branch of code that also has a branch for NPUs.

    That is: another test of the same if-chain or conditional expression, or an
    earlier ``if …: return`` of the same block, speaks of NPUs, or another ``if``
    of the block does the same for them. Or it is in a comparison that another
    one of the block makes with an NPU's name.
    """
    for child, parent in index.way_up(node):
        if isinstance(parent, ast.Compare) and _compared_with_npu(index, parent):
            return True
        if isinstance(parent, ast.IfExp):
            if child is parent.orelse and _speaks_of_npus(parent.test):
                return True
        elif isinstance(parent, ast.If):
            if _in_chain(index, parent, child) or (child not in parent.orelse and _has_twin(index, parent)):
                return True
        if isinstance(child, ast.stmt) and _after_npu_return(index, child):
            return True
        if isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
            return False
    return False


def chooses_for_npus(index: ModuleIndex, node: ast.AST, start: int, end: int) -> bool:
    """Whether a place inside a node holds a conditional expression that has a case for NPUs."""
    return any(
        start <= index.start(each) and index.end(each) <= end and _speaks_of_npus(each.test)
        for each in walk(node)
        if isinstance(each, ast.IfExp)
    )


def patches_cuda(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is patched into ``torch.cuda``: ``torch.cuda.graph = torch.npu.graph``."""
    is_stored = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
    return is_stored and index.qualified_name(node).startswith("torch.cuda.")


def is_flag_for_nvidia(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a comparison's outcome gets a name that says NVIDIA: ``IS_NVIDIA = platform == "cuda"``."""
    if not isinstance(index.parent(node), _CONDITIONS):
        return False
    holder = next((up for up in index.above(node) if not isinstance(up, _CONDITIONS)), None)
    if isinstance(holder, ast.Return):
        function = index.function_of(holder)
        return function is not None and bool(_NVIDIA.search(function.name))
    targets = holder.targets if isinstance(holder, ast.Assign) else []
    return any(_NVIDIA.search(last_name(target)) for target in targets)


def beside_npu(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a list, a dictionary, an enumeration or a chain of conditions also has a case for NPUs."""
    parent = index.parent(node)
    if isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        return has_npu(index, parent, parent.elts)
    if isinstance(parent, ast.Dict):
        if not has_npu(index, parent, parent.keys):
            return False
        of_cuda = (value for key, value in zip(parent.keys, parent.values) if string_value(key) == "cuda")
        return node in parent.keys or node in of_cuda
    if isinstance(parent, ast.Assign) and isinstance(owner := index.parent(parent), ast.ClassDef):
        return has_npu(index, owner, (item.value for item in owner.body if isinstance(item, ast.Assign)))
    return False


def has_npu(index: ModuleIndex, holder: ast.AST, values: Iterable[ast.AST | None]) -> bool:
    """Whether one of the values in a holder is an NPU's name; each of thousands of them asks."""

    def find() -> bool:
        texts = filter(None, map(string_value, values))
        return any(text.partition(":")[0].lower() in ("npu", "hccl") for text in texts)

    return index.once(("npu in", holder), find)


def _compared_with_npu(index: ModuleIndex, compare: ast.Compare) -> bool:
    """Whether ``IS_NPU = platform == "npu"`` stands in the same block as ``IS_CUDA = platform == "cuda"``."""
    outside = (up for up in index.above(compare) if not isinstance(up, (ast.BoolOp, ast.UnaryOp)))
    statement = next(outside, None)
    if not isinstance(statement, ast.Assign):
        return False
    compared = ast.dump(compare.left)
    return any(
        isinstance(inner, ast.Compare) and ast.dump(inner.left) == compared and _speaks_of_npus(inner)
        for other in getattr(index.parent(statement), "body", ())
        if isinstance(other, ast.Assign) and other is not statement
        for inner in ast.walk(other.value)
    )


def _in_chain(index: ModuleIndex, holder: ast.If, child: ast.AST) -> bool:
    """Whether ``child`` is in one branch of an if-chain and a test of another branch speaks of NPUs."""
    others = _tests_above(index, holder)
    if child in holder.orelse:
        if _else_if(holder):
            return False  # an elif: the chain is looked at from there
        others.append(holder.test)
    else:
        following = _else_if(holder)
        while following is not None:
            others.append(following.test)
            following = _else_if(following)
    return any(_speaks_of_npus(test) for test in others)


def _else_if(holder: ast.If) -> ast.If | None:
    """The ``elif`` of an ``if``."""
    first = holder.orelse[0] if len(holder.orelse) == 1 else None
    return first if isinstance(first, ast.If) else None


def _tests_above(index: ModuleIndex, holder: ast.If) -> list[ast.expr]:
    tests = []
    parent = index.parent(holder)
    while isinstance(parent, ast.If) and parent.orelse == [holder]:
        tests.append(parent.test)
        holder, parent = parent, index.parent(parent)
    return tests


def _has_twin(index: ModuleIndex, holder: ast.If) -> bool:
    """Whether another ``if`` of the block does for NPUs, name by name, what this one does for CUDA."""
    others = [each for each in index.block(holder) if isinstance(each, ast.If) and each is not holder]
    others = [each for each in others if _speaks_of_npus(each.test)]
    return bool(others) and _as_for_cuda(holder) in [_as_for_cuda(each) for each in others]


def _as_for_cuda(holder: ast.If) -> str:
    text = " ".join(ast.dump(statement) for statement in holder.body).lower()
    return text.replace("npu", "cuda").replace("hccl", "nccl")


def _after_npu_return(index: ModuleIndex, statement: ast.stmt) -> bool:
    """Whether an earlier ``if`` of the block has left it on NPUs."""
    for earlier in index.before(statement):
        if isinstance(earlier, ast.If) and _speaks_of_npus(earlier.test) and not earlier.orelse:
            if isinstance(earlier.body[-1], LEAVING):
                return not isinstance(earlier.body[-1], ast.Raise)
    return False


def _speaks_of_npus(test: ast.expr) -> bool:
    for node in ast.walk(test):
        name = last_name(node) if isinstance(node, (ast.Attribute, ast.Name)) else string_value(node)
        if name is not None and knows_npus(name):
            return True
    return False
