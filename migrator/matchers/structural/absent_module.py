"""The import of a whole module that is gone, where all that a file reads of it has an equivalent.

``from torch import _six`` with ``_six.inf`` becomes ``import math`` with ``math.inf``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple, Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.removal import without_statement
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, imported


class Member(NamedTuple):
    """What is written for a member of the module, and the module that has to be imported for it, if any."""

    text: str
    module: str = ""


class Mended(NamedTuple):
    """The edits of the import and of all uses, the attributes that are written anew, and what they become."""

    edits: list[Edit]
    members: list[ast.Attribute]
    texts: list[str]


def without_module(
    index: ModuleIndex, node: Import, module: str, equivalent: Callable[[str], Optional[Member]]
) -> Optional[Mended]:
    """What takes the import of ``module`` out of ``node``; None where a use of it has no equivalent.

    Other names that the statement imports stay. A comment inside of it would be lost: None, too.
    """
    alias = next(each for each, full in zip(node.names, imported(node)) if full == module)
    if "#" in index.segment(node):
        return None
    whole = isinstance(node, ast.Import) and not alias.asname  # import torch._six binds torch
    package, *hidden = module.split(".")
    bound = package if whole else alias.asname or alias.name
    bindings = index.scope_of(node).bindings.get(bound, ())
    if not whole and len(bindings) != 1:
        return None
    members = list(_members(index, node, bound, hidden if whole else []))
    found = [equivalent(each.attr) if isinstance(each, ast.Attribute) else None for each in members]
    if not all(found):
        return None
    edits = [instead_of(index, each, known.text) for each, known in zip(members, found) if known]
    others = [each for each in node.names if each is not alias]
    statements = [_import(node, others)] if others else []
    if whole and all(each.node is node or each.name != package for each in bindings):
        statements.append(f"import {package}")
    statements += dict.fromkeys(f"import {known.module}" for known in found if known and known.module)
    edits.append(
        instead_of(index, node, statement_separator(index, node).join(statements))
        if statements
        else without_statement(index, node)
    )
    texts = dict.fromkeys(known.text for known in found if known)
    return Mended(edits, [each for each in members if isinstance(each, ast.Attribute)], list(texts))


def _members(index: ModuleIndex, node: Import, bound: str, hidden: list[str]) -> Iterator[ast.AST]:
    """What is read of the module: mostly attributes; of another use of it what stands around it."""
    for read in index.uses(bound, index.scope_of(node)):
        each: ast.AST = read
        for part in hidden:
            around = index.parent(each)
            if not isinstance(around, ast.Attribute) or around.attr != part:
                break
            each = around
        else:
            yield index.parent(each) or each


def _import(node: Import, names: list[ast.alias]) -> str:
    every = ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in names)
    return f"from {node.module} import {every}" if isinstance(node, ast.ImportFrom) else f"import {every}"
