"""The statements and scopes of a text: what its indexes share, as it depends on no word."""

from __future__ import annotations

import ast
from typing import Any, Optional

from migrator.files.lines import Lines
from migrator.names.scopes import Binding, Scope, bind_import, bound_names
from migrator.names.tree import Function, Import, Statement, body_fields, parse


class Outline:
    """The tree of a text, with what its statements are and bind. Nobody changes it: see ``outline``.

    ``parents`` are those of the statements; ``opened`` are the scopes of the module, of
    functions and of classes, each right before those inside it. ``stars`` are the modules of which all names
    are imported.
    """

    def __init__(self, text: str, lines: Optional[Lines] = None) -> None:
        self.lines = lines or Lines(text)
        self.tree = parse(text)
        self.module_scope = Scope(self.tree, None)
        self.statements: list[Statement] = []
        self.imports: list[Import] = []
        self.classes: list[ast.ClassDef] = []
        self.functions: list[Function] = []
        self.stars: list[str] = []
        self.parents: dict[object, ast.AST] = {}
        self.opened: dict[object, Scope] = {self.tree: self.module_scope}
        self._walk()

    def _walk(self) -> None:
        statements, parents = self.statements, self.parents
        stack: list[tuple[Any, ast.AST, Scope]] = [
            (child, self.tree, self.module_scope) for child in reversed(self.tree.body)
        ]
        while stack:
            node, parent, scope = stack.pop()
            parents[node] = parent
            inner = scope
            cls = node.__class__
            statements.append(node)
            scope.statements.append(node)
            if cls is ast.Import or cls is ast.ImportFrom:
                self.imports.append(node)
                if cls is ast.ImportFrom and node.names[0].name == "*":
                    self.stars.append("." * node.level + (node.module or ""))
                bind_import(scope, node)
            elif cls is ast.FunctionDef or cls is ast.AsyncFunctionDef:
                self.functions.append(node)
                scope.bind(node.name, Binding("def", node))
                inner = self.opened[node] = Scope(node, scope)
                inner.bind_arguments(node.args)
            elif cls is ast.ClassDef:
                self.classes.append(node)
                scope.bind(node.name, Binding("class", node))
                inner = self.opened[node] = Scope(node, scope)
            elif cls is ast.Global or cls is ast.Nonlocal:
                scope.outer = scope.outer.union(node.names)
            else:
                for name, value in bound_names(node):
                    scope.bind(name, Binding("assign", node, value=value))
            for field in reversed(body_fields(cls)):
                stack += [(child, node, inner) for child in reversed(getattr(node, field))]


_RECENT = 8
_MOST = 1_000_000  # characters of texts; an outline takes 40 times as many bytes
_kept: dict[str, Outline] = {}
_size = 0


def outline(text: str, lines: Optional[Lines] = None) -> Outline:
    """The outline of a text, made once for those who soon ask again; ``lines`` are its own, where known.

    A file is read to see what it tells the others, and again to be checked: each is parsed once. Where all
    take too much memory, the first ones and the last stay. Raises what ``parse`` raises.
    """
    global _size
    shared = _kept.get(text)
    if shared is None:
        shared = Outline(text, lines)
        _size += len(text)
        while _size > _MOST and len(_kept) >= _RECENT:
            forget_outline(tuple(_kept)[-_RECENT])  # another thread may be here, too
        _kept[text] = shared
    return shared


def forget_outline(text: str) -> None:
    """Give the memory of an outline back: a tree that goes at once is none that garbage is looked for in."""
    global _size
    if _kept.pop(text, None) is not None:
        _size -= len(text)
