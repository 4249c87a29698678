"""What names, and the values beside it, say of a value that may be a device: by lists of the rule packs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from migrator.language import N_
from migrator.light import Declared, NamedTuple
from migrator.names.goes_to import kept_as
from migrator.names.index import ModuleIndex
from migrator.names.tree import bare_name, called_name, imported, is_cpu, string_value

_CARD_QUESTIONS = frozenset({"torch.cuda.is_available", "torch.cuda.device_count"})
_MOVES = r"\btorch\.(?:cuda|npu|device|zeros|ones|empty|tensor|load)\b|\.(?:to|cuda|npu)\("
_OF_PATHS = ("dir", "path", "home", "root", "folder")  # the ends of names of places on a disk
_LONGEST_NAME = 100  # characters in which a hint is looked for
# A value that goes with CUDA, or that takes the place of one: it says no more of what stands beside it.
_OF_CUDA = re.compile(r"(cuda|gpu|auto|nccl|hccl|mpi|ucc|xccl|ccl|xla|tpu)(:\d+)?$", re.IGNORECASE)
# What torch has no device for: beside them "cuda" is a device of another library, or a build of a program.
_OF_OTHERS = frozenset({"dml", "directml", "webgpu", "vulkan", "metal", "coreml", "openvino", "tensorrt"})
# Methods by which something says what it is.
OF_OWNER = ("name", "type", "get_name", "kind")
_OTHER_DEVICE = re.compile(r"(cpu|mps|xpu|npu|gloo|meta)(:\d+)?$")


class DeviceVocabulary(Declared):
    """What the rule packs know of where devices go.

    ``apis`` maps a qualified API, or ``.method`` for a method of any receiver, to the positions and keywords
    that take a device. ``keywords`` are device keywords of any call. ``never`` are calls whose strings are
    something else. ``hint`` fits a name that says device, backend or accelerator. ``noun`` is what such a
    value is called in reports. ``foreign`` are packages whose devices are not torch's. ``keys`` are the
    names, in lower case, whose values the project reads as devices. ``foreign_words`` are parts of names that
    say a device of a library where a file of the project imports it, with its packages; ``libraries`` are
    those that some file imports, and ``unsaid`` the words that hold in the file at hand. ``alone``: the
    project computes with some of ``foreign``, and with nothing of torch.
    """

    apis: Mapping[str, tuple[object, ...]]
    keywords: frozenset[str]
    never: frozenset[str]
    option_calls: frozenset[str]
    hint: re.Pattern[str]
    foreign: frozenset[str] = field(default_factory=frozenset)
    noun: str = N_("device")
    keys: frozenset[str] = field(default_factory=frozenset)
    foreign_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    libraries: frozenset[str] = field(default_factory=frozenset)
    unsaid: frozenset[str] = field(default_factory=frozenset)
    alone: bool = False

    def says(self, name: str) -> bool:
        """Whether a name says device, backend or accelerator, or the project reads it as one."""
        if name.lower() in self.keys:
            return True
        if self.says_path(name):
            return False
        return bool(self.hint.search(name, 0, _LONGEST_NAME)) and not self.leaves(name)

    def says_path(self, name: str) -> bool:
        """Whether a name says a place on a disk, ``cuda_dir``, that the project reads as no device."""
        word = name.lower()
        return word.rstrip("s").endswith(_OF_PATHS) and word not in self.keys

    def leaves(self, name: str) -> bool:
        """Whether a name, or an option's, says a device of a library that the project uses, and no other.

        ``_accelerator_flag`` and ``gpu_accelerator`` do where ``accelerator`` does; ``accelerator_device``
        says a device.
        """
        word = name.strip("-").lower()
        if not self.unsaid or word in self.keys:
            return False
        parts = word.replace("-", "_").split("_")
        others = [part for part in parts if part not in self.unsaid and part.rstrip("s") not in self.unsaid]
        rest = "_".join(part for part in others if part not in ("gpu", "cuda"))
        return len(others) < len(parts) and not self.hint.search(rest, 0, _LONGEST_NAME)

    def of_project(
        self, keys: frozenset[str], libraries: frozenset[str], own: frozenset[str], has_torch: bool
    ) -> DeviceVocabulary:
        """The vocabulary of a project: its keys, the libraries that it imports, and those that are its own.

        The words of a library are migrated with it where the project is that library.
        """
        words = {word: owners for word, owners in self.foreign_words.items() if own.isdisjoint(owners)}
        alone = bool(libraries) and libraries <= self.foreign and not (has_torch or libraries & own)
        return replace(self, keys=keys, libraries=libraries, foreign_words=words, alone=alone)

    def in_file(self, index: ModuleIndex) -> DeviceVocabulary:
        """The vocabulary of one file: without the words that are those of a library.

        It imports that, or another file does, to which it may hand them on.
        """
        if not (self.foreign_words or self.alone):
            return self
        names = (name for node in index.imports for name in imported(node))
        packages = self.libraries.union(name.partition(".")[0] for name in names)
        unsaid = {word for word, owners in self.foreign_words.items() if not packages.isdisjoint(owners)}
        alone = self.alone and "torch" not in packages
        return replace(self, unsaid=frozenset(unsaid), alone=alone) if unsaid or alone != self.alone else self

    def says_device(self, node: ast.expr) -> bool:
        """Whether an expression's name says that its value is a device, a device type or a backend."""
        if isinstance(node, ast.Call):
            return self._call_says_device(node)
        if isinstance(node, ast.Subscript):
            key = string_value(node.slice)
            if key is not None:
                return self.says(key)
            # A slice of a device's text is no device: "npu:0"[:4] is "npu:".
            return not isinstance(node.slice, ast.Slice) and self.says_device(node.value)
        if isinstance(node, ast.Attribute) and node.attr in ("type", "name", "value"):
            return self.says_device(node.value)
        if isinstance(node, (ast.Attribute, ast.Name)):
            return self.says(bare_name(node))
        if isinstance(node, ast.BoolOp):
            return any(self.says_device(value) for value in node.values)
        if isinstance(node, ast.NamedExpr):
            return self.says_device(node.target)
        if isinstance(node, ast.JoinedStr):  # f"{device}"
            only = node.values[0] if len(node.values) == 1 else None
            return isinstance(only, ast.FormattedValue) and self.says_device(only.value)
        text = string_value(node)
        return text is not None and self.says(text.strip("-"))

    def _call_says_device(self, call: ast.Call) -> bool:
        function, given = call.func, call.args
        if isinstance(function, ast.Attribute):
            if self.says(function.attr) or (function.attr == "type" and not given):
                return True
            if function.attr in OF_OWNER:
                return self.says(without_cuda(called_name(function.value) or bare_name(function.value)))
            is_key = function.attr in ("get", "getenv", "pop") and given
            if not is_key and string_value(function.value) is not None:  # "cuda".lower() is no name
                return False
            return self.says_device(given[0] if is_key else function.value)
        if not isinstance(function, ast.Name):
            return False
        if function.id == "getattr" and len(given) > 1:
            return self.says_device(given[1]) or self.says_device(given[0])
        if function.id in ("str", "repr", "type") and given:
            return self.says_device(given[0])
        return self.says(function.id)


def without_cuda(name: str) -> str:
    """A class's name without the words for CUDA: what a ``Gpu`` is called, or its kind, may be any word."""
    return re.sub(r"(?i)gpus?|cuda", "", name)


def is_device_or_backend(text: str) -> bool:
    """Whether a text is the name of a device or of a backend that torch knows."""
    return bool(_OTHER_DEVICE.match(text) or _OF_CUDA.match(text))


def asks_for_cuda(test: ast.expr) -> bool:
    """Whether a condition asks for a GPU."""
    members = (getattr(node, "attr", "") for node in ast.walk(test))
    return not {"is_available", "device_count"}.isdisjoint(members)


def chosen_beside_cpu(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a string is what a program takes where ``torch.cuda`` has a GPU, and ``"cpu"`` where not.

    So ``"cuda" if torch.cuda.is_available() else "cpu"``, or the same as a
    statement: once the question is about NPUs, the string has to go with it.
    """
    child: ast.AST = node
    parent = index.parent(child)
    while isinstance(parent, (ast.JoinedStr, ast.BinOp)):
        child, parent = parent, index.parent(parent)
    if isinstance(parent, ast.IfExp):
        return child is parent.body and is_cpu(parent.orelse) and _asks_torch(index, parent.test)
    choice = index.parent(parent)
    if not isinstance(parent, ast.Assign) or not isinstance(choice, ast.If):
        return False
    if parent not in choice.body or not _asks_torch(index, choice.test):
        return False
    others = (each for each in choice.orelse if isinstance(each, ast.Assign) and is_cpu(each.value))
    return ast.dump(parent.targets[0]) in (ast.dump(other.targets[0]) for other in others)


def _asks_torch(index: ModuleIndex, test: ast.expr) -> bool:
    """Whether a condition is that ``torch.cuda`` has a GPU: by ``is_available()`` or ``device_count()``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt):
        limit = test.comparators[0]
        if not (isinstance(limit, ast.Constant) and limit.value == 0):
            return False
        test = test.left
    return isinstance(test, ast.Call) and index.qualified_name(test.func) in _CARD_QUESTIONS


def works_with_foreign(index: ModuleIndex, vocabulary: DeviceVocabulary, node: ast.AST) -> str:
    """The package whose devices are not torch's, where the code around a node uses it.

    That is the class, or the function, and it moves nothing of torch. A value that the project reads as a
    device is one, wherever it stands.
    """
    names: dict[str, str] = {}
    for statement in index.imports:
        for alias in () if getattr(statement, "level", 0) else statement.names:  # from .onnxruntime import …
            package = (getattr(statement, "module", "") or alias.name).partition(".")[0]
            if package in vocabulary.foreign:
                names[(alias.asname or alias.name).partition(".")[0]] = package
    owner = index.class_of(node) or index.function_of(node) if names else None
    text = index.segment(owner) if owner is not None else ""
    if not text or re.search(_MOVES, text) or kept_as(index, node).lower() in vocabulary.keys:
        return ""
    words = set(re.findall(r"\w+", text))
    return next((package for name, package in names.items() if name in words), "")


class Beside(NamedTuple):
    """What stands beside a value: the question for a GPU, the string ``"cpu"``, what is surely a device."""

    question: bool = False
    cpu: bool = False
    device: bool = False

    def __or__(self, other: Beside) -> Beside:
        return Beside(self.question or other.question, self.cpu or other.cpu, self.device or other.device)


def beside(siblings: Iterable[ast.expr]) -> Beside:
    """What a value stands beside. The question for a device counts as one.

    Among many other words (the names of options) ``cpu`` is no device.
    """
    every = [(each, string_value(each)) for each in siblings]
    asked = any(text is None and asks_for_cuda(each) for each, text in every)
    texts = [text for _each, text in every if text is not None]
    devices = sum(map(is_device_or_backend, texts))
    device = any(map(_OTHER_DEVICE.match, texts)) and _OF_OTHERS.isdisjoint(texts)
    return Beside(asked, "cpu" in texts, asked or (device and len(texts) <= 3 * devices))
