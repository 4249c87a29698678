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
    """The imports of the module where nodes need it."""
    items = [insertion(context, rule, node, edit, api=NAME) for node, edit in _places(context, needing)]
    message = _("the module {name} holds the differences between devices", name=NAME)
    return [item._replace(finding=item.finding._replace(message=message)) for item in items]


def _places(context: FileContext, needing: Sequence[ast.AST]) -> list[tuple[ast.stmt, Edit]]:
    """Where the imports go: above the imports among the nodes that need them."""
    index, statement = context.index, place_of(context).statement(NAME)
    places = torch_npu_imports(index, needing, statement=statement)
    early = [node for node in needing if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = min(early, key=index.start, default=None)
    if first is None or not places or places[0][1].start <= index.start(first):
        return places
    indent, _ = index.lines.beside(index.span(first))
    edit = Edit(index.start(first), index.start(first), statement + newline_of(index.text) + indent.decode())
    return [(first, edit), *places[1:]]
