"""Which files are started."""

from __future__ import annotations

import ast

from migrator.files.document import is_notebook
from migrator.matchers.context import FileContext


def is_entry(context: FileContext) -> bool:
    """Whether a file is one that is started, as every notebook is.

    It asks whether it is ``__main__``, or runs something at its top level: a
    loop, a ``with``, or a call whose result nobody keeps.
    """
    if is_notebook(context.name):
        return True
    index = context.index
    own = {node.name for node in index.functions}
    for node in index.tree.body:
        if isinstance(node, ast.If) and "__name__" in index.segment(node.test):
            return True
        if isinstance(node, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and (called.id in own or called.id == "print"):
                return True
            if isinstance(called, ast.Attribute) and called.attr in ("fit", "train", "run", "Fire", "main"):
                return True
    return False
