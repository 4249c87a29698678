"""What one Python file tells the others: classes with CUDA-like members, extension modules, and what it does
to the whole program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from migrator.names.index import ModuleIndex
from migrator.names.outline import outline
from migrator.names.tree import FUNCTIONS, bare_name, targets_of, walk
from migrator.project.extensions import Extension, may_build, scan_extensions
from migrator.project.program import NOTHING, ProgramFacts, scan_program

_MEMBERS = ("cuda", "is_cuda")
# A class of a file may have a member with a CUDA name.
# From a plain beginning a search is many times as fast as from a choice of them.
_MAY_DEFINE = re.compile(
    r"cuda\b(?:(?<=def[ \t]cuda)|(?<=def[ \t]is_cuda)"
    r"|(?:(?<=[.\s]cuda)|(?<=[.\s]is_cuda))\s*(?:=[^=]|:))"
)
# What in a class's body shows that its ``cuda`` moves tensors.
_MOVES_TENSORS = re.compile(r"\.(?:cuda|npu|to|is_cuda|is_npu)\b|\btorch\b")


class ClassFacts(NamedTuple):
    """A class of the project that defines, or stores, a member with a CUDA name."""

    file: str
    name: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    stored: frozenset[str]
    moves_tensors: bool


class FileFacts(NamedTuple):
    """What one Python file tells the others."""

    classes: tuple[ClassFacts, ...] = ()
    extensions: tuple[Extension, ...] = ()
    program: ProgramFacts = NOTHING


def scan_file(name: str, text: str) -> FileFacts:
    """What a Python file has to tell the others.

    Never raises: a file that cannot be parsed has nothing to tell.
    """
    program = scan_program(name, text)
    defines, builds = "cuda" in text and _MAY_DEFINE.search(text) is not None, may_build(text)
    if not defines and not builds:
        return FileFacts(program=program)
    try:
        if not builds:
            return FileFacts(_classes(name, text, outline(text).classes), program=program)
        index = ModuleIndex(text, ())
        extensions = scan_extensions(name, index)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return FileFacts()
    return FileFacts(_classes(name, text, index.classes) if defines else (), extensions, program)


def _classes(file: str, text: str, nodes: Iterable[ast.ClassDef]) -> tuple[ClassFacts, ...]:
    every = (_class_facts(file, text, node) for node in nodes)
    return tuple(facts for facts in every if facts.methods or facts.stored)


def _class_facts(file: str, text: str, node: ast.ClassDef) -> ClassFacts:
    methods: set[str] = set()
    stored: set[str] = set()
    moves = False
    for item in node.body:
        if isinstance(item, FUNCTIONS) and item.name in _MEMBERS:
            moves_here = bool(_MOVES_TENSORS.search(ast.get_source_segment(text, item) or ""))
            is_property = any(bare_name(d).endswith("property") for d in item.decorator_list)
            # A property is read like a value; whether it is about tensors, its body says.
            (stored if is_property and not moves_here else methods).add(item.name)
            moves = moves or moves_here
        stored.update(t.id for t in targets_of(item) if isinstance(t, ast.Name) and t.id in _MEMBERS)
    for inner in walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr in _MEMBERS:
            stored.add(inner.attr)
    bases = tuple(map(ast.unparse, node.bases))
    return ClassFacts(file, node.name, bases, frozenset(methods), frozenset(stored), moves)
