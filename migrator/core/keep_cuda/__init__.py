"""Mode keep-cuda: one source for CUDA, NPUs and the CPU. The same findings, with other fixes.

They use the module ``shared_device`` of a result: where its copies lie, and how a file imports it, is here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.npu_import import torch_npu_imports
from migrator.matchers.packs import Rule
from migrator.project.added_package import Place

NAME = "shared_device"
FILE = f"{NAME}.py"
# Its members: where something is put, what a question compares with, and on which side a guard is.
PLACE, QUESTION = f"{NAME}.TYPE", f"{NAME}.ACCELERATOR"
BACKEND, BACKEND_QUESTION = f"{NAME}.BACKEND", f"{NAME}.ACCELERATOR_BACKEND"
ON_NPU = f"{NAME}.IS_NPU"


def place_of(context: FileContext) -> Place:
    """Where the module lies for a file."""
    return context.project.places.get(context.name, Place(""))


def module_imports(context: FileContext, rule: Rule, needing: Sequence[ast.AST]) -> list[Match]:
    """The imports of the module where nodes need it, above the imports among these."""
    index, statement = context.index, place_of(context).statement(NAME)
    places = torch_npu_imports(index, needing, statement=statement)
    early = [node for node in needing if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = min(early, key=index.start, default=None)
    if first is not None and places and places[0][1].start > (start := index.start(first)):
        indent = index.lines.beside(index.span(first))[0].decode()
        places[0] = first, Edit(start, start, statement + newline_of(index.text) + indent)
    message = _("the module {name} holds the differences between devices", name=NAME)
    return [insertion(context, rule, node, edit, NAME, message) for node, edit in places]
