"""Strings that name a device, a backend or a type of CUDA tensors: by how they look, and by where they go."""

from __future__ import annotations

import ast
import re

from migrator.language import _
from migrator.names.device_context import (
    CERTAIN,
    LIKELY,
    NO,
    UNCLEAR,
    DeviceContext,
    device_context,
    is_searched_pattern,
)
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.goes_to import behind_lists
from migrator.names.index import ModuleIndex
from migrator.names.tree import String, called_name

_DEVICE = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?\Z")
# A regular expression for the name of a device.
_DEVICE_PATTERN = re.compile(r"\^?cuda:?(?:\(?:?(?:\[0-9\]|\\d)[+*]?\)?)?[?$]*\Z")
# A word of one, by itself: no part of a name, a path or an ending.
_CUDA_WORD = re.compile(r"(?<![\w./-])cuda(?![\w./-])")
_OTHER_TYPE = re.compile(r"(?<![\w./-])(?:cpu|mps|xpu|dml|hpu|xla|meta|privateuseone)(?![\w./-])")
_OF_FILES = re.compile(r"\)[_-]|[_-]\(|\\\.|/")  # what stands in patterns of file names
_INDEXED = re.compile(r"cuda:(\d+|%[dsi]|\{.*\})\Z")
_BACKEND = re.compile(r"nccl\Z", re.IGNORECASE)
_PAIRS = re.compile(r"\w+:\w+(?:,\w+:\w+)*\Z")
_TORCH = re.compile("torch(?!_npu)")  # a migration's own import says nothing of the code
_TENSOR_TYPE = re.compile(r"torch\.cuda(?:\.\w*Tensor|\.\w*Storage)\Z")


def written(index: ModuleIndex, node: String) -> str:
    """A string's text; that of an f-string with ``{}`` for the fields."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(part.raw if part.expression is None else "{}" for part in index.parts(node))


def is_docstring(index: ModuleIndex, node: String) -> bool:
    """Whether a string is a statement of its own: nobody reads it."""
    return isinstance(index.parent(node), ast.Expr)


def names_device(index: ModuleIndex, node: String) -> bool:
    """Whether a string looks like a CUDA device, its beginning, or a pattern for it."""
    text = written(index, node)
    if _DEVICE.match(text):
        return not isinstance(index.parent(node), ast.JoinedStr)
    if "cuda" not in text or not (_DEVICE_PATTERN.match(text) or _lists_devices(text)):
        return False
    return any(is_searched_pattern(index, each) for each in index.reads_of(_compiled(index, node)))


def _lists_devices(text: str) -> bool:
    """Whether a regular expression has ``cuda`` once, as one of several device types: ``(?:cpu|cuda):``."""
    plain = text.replace("\\b", "")
    return (
        text.count("cuda") == 1
        and "|" in text
        and "npu" not in text
        and not _OF_FILES.search(text)
        and _CUDA_WORD.search(plain) is not None
        and _OTHER_TYPE.search(plain) is not None
    )


def _compiled(index: ModuleIndex, node: String) -> ast.expr:
    """What ``re.compile`` makes of a string that it is given; else the string."""
    call = index.parent(node)
    if isinstance(call, ast.Call) and called_name(call) == "compile" and call.args[:1] == [node]:
        return call
    return node


def names_backend(text: str) -> bool:
    """Whether a text is NCCL, or gives each device type its backend."""
    return bool(_BACKEND.match(text)) or names_backends(text)


def names_backends(text: str) -> bool:
    """Whether a text gives each device type its backend: ``cpu:gloo,cuda:nccl``."""
    return (
        bool(_PAIRS.match(text))
        and re.search(r"\bcuda\b|\bnccl\b", text, re.IGNORECASE) is not None
        and re.search(r":(nccl|gloo|mpi|ucc|xccl)\b", text) is not None
    )


def names_tensor_type(text: str) -> bool:
    """Whether a text is the name of a type of CUDA tensors."""
    return bool(_TENSOR_TYPE.match(text))


def context_of_device(index: ModuleIndex, vocabulary: DeviceVocabulary, node: String) -> DeviceContext:
    """Where a string goes that looks like a device."""
    context = device_context(index, vocabulary, node)
    text = written(index, node)
    has_index = _INDEXED.match(text) or (text == "cuda:" and isinstance(index.parent(node), ast.BinOp))
    if context.verdict == UNCLEAR and has_index:
        return DeviceContext(LIKELY, _("beginning of a device name"))
    return context


def context_of_backend(index: ModuleIndex, vocabulary: DeviceVocabulary, node: String) -> DeviceContext:
    """Where a string goes that looks like a backend."""
    text = written(index, node)
    if names_backends(text):
        return DeviceContext(CERTAIN, _("a backend for each device type"))
    context = device_context(index, vocabulary, node)
    # In small letters it is hardly ever anything but the backend. In capitals it
    # is also the beginning of the names of NCCL's environment variables.
    if context.verdict == UNCLEAR and text.islower() and not _is_searched_for(index, node):
        # A file that never speaks of torch, as one that installs NCCL, may mean the library.
        return DeviceContext(LIKELY if _TORCH.search(index.text) else UNCLEAR, context.reason)
    return context


def context_of_tensor_type(index: ModuleIndex, vocabulary: DeviceVocabulary, node: String) -> DeviceContext:
    """Where a string goes that is the name of a type of CUDA tensors."""
    context = device_context(index, vocabulary, node)
    if is_argument_of(index, node, "type") or _is_compared_with_type(index, node):
        return DeviceContext(CERTAIN, _("the name of a tensor type"))
    if context.verdict in (UNCLEAR, NO) and not is_docstring(index, node):
        return DeviceContext(LIKELY, _("the name of a tensor type, in {reason}", reason=context.reason))
    return context


def is_argument_of(index: ModuleIndex, node: String, name: str) -> bool:
    """Whether a string is a positional argument of what has that last name."""
    call = index.parent(node)
    return isinstance(call, ast.Call) and node in call.args and called_name(call) == name


def _is_searched_for(index: ModuleIndex, node: String) -> bool:
    """Whether a string is looked for inside another one: ``"nccl" in line``."""
    parent = index.parent(node)
    if not isinstance(parent, ast.Compare) or node is not parent.left:
        return False
    return isinstance(parent.ops[0], (ast.In, ast.NotIn))


def _is_compared_with_type(index: ModuleIndex, node: String) -> bool:
    """Whether a string is compared with ``x.type()``, by itself or in a list."""
    holder = behind_lists(index, node).holder
    operands = [holder.left, *holder.comparators] if isinstance(holder, ast.Compare) else []
    return any(called_name(operand) == "type" for operand in operands)
