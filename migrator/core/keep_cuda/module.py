"""The module ``shared_device`` of a result: where its copies lie, and how a file imports it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext
from migrator.matchers.npu_import import torch_npu_imports
from migrator.project.module_names import SOURCE_FOLDER
from migrator.project.project import Project

NAME = "shared_device"
FILE = f"{NAME}.py"
# Its members: where something is put, what a question compares with, and on which side a guard is.
PLACE, QUESTION = f"{NAME}.TYPE", f"{NAME}.ACCELERATOR"
BACKEND, BACKEND_QUESTION = f"{NAME}.BACKEND", f"{NAME}.ACCELERATOR_BACKEND"
ON_NPU = f"{NAME}.IS_NPU"


def folder_of(project: Project, name: str) -> str:
    """The folder of the copy that a file imports: its outermost package, or where it lies itself."""
    folders = name.split("/")[:-1]
    around = ("/".join(folders[:depth]) for depth in range(1, len(folders) + 1))
    return next((folder for folder in around if folder in project.packages), "/".join(folders))


def import_statement(context: FileContext) -> str:
    """The import of the module for a file."""
    return f"import {NAME}" if not (home := home_of(context)) else f"from {home} import {NAME}"


def module_imports(context: FileContext, needing: Sequence[ast.AST]) -> list[tuple[ast.stmt, Edit]]:
    """The edits that import the module where nodes need it, above the imports among them."""
    index, statement = context.index, import_statement(context)
    places = torch_npu_imports(index, needing, statement=statement)
    early = [node for node in needing if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = min(early, key=index.start, default=None)
    if first is None or not places or places[0][1].start <= index.start(first):
        return places
    indent, _ = index.lines.beside(index.span(first))
    edit = Edit(index.start(first), index.start(first), statement + newline_of(index.text) + indent.decode())
    return [(first, edit), *places[1:]]


def home_of(context: FileContext) -> str:
    """The package from which a file imports the module, empty where it lies beside the file.

    A file that imports its own package by its full name goes on doing so, and may be started as a script.
    """
    folder = folder_of(context.project, context.name)
    if folder not in context.project.packages:
        return ""
    inside = context.name.split("/")[folder.count("/") + 1 : -1]
    package = ".".join(part for part in folder.split("/") if part != SOURCE_FOLDER)
    imports = context.index.imports
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in imports)
    if not relative and any(_names(node, package) for node in imports):
        return package
    return "." * (len(inside) + 1)


def _names(node: ast.Import | ast.ImportFrom, package: str) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return any(f"{name}.".startswith(f"{package}.") for name in names)
