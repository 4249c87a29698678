"""Which keywords a definition takes, as words for ``torch_names.csv``.

A word is a parameter's name, or ``*`` (it takes keywords of unknown meaning), ``^`` (those of the class's
base as well) or ``?`` (they are not known).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Optional

from tools.releases.bindings import FUNCTIONS, Definition, Function

OPEN, BASE, UNKNOWN = "*", "^", "?"
# What torch.load hands to pickle's own classes, which take no parameter of torch's.
_HANDED_ON = {"pickle_load_args"}


def of_definitions(nodes: Iterable[Optional[Definition]], method: bool = False) -> tuple[str, ...]:
    """The words of all definitions of one name together, overloads and those under conditions."""
    words: dict[str, None] = {}
    for node in nodes:
        words.update(dict.fromkeys(_words(node, method)))
    return tuple(words)


def _words(node: Optional[Definition], method: bool) -> tuple[str, ...]:
    if isinstance(node, FUNCTIONS):
        return _of_function(node, method and "staticmethod" not in map(ast.unparse, node.decorator_list))
    if isinstance(node, ast.ClassDef):
        return _of_class(node)
    return (UNKNOWN,)


def _of_class(node: ast.ClassDef) -> tuple[str, ...]:
    makers = [
        inner for inner in node.body if isinstance(inner, FUNCTIONS) and inner.name in ("__init__", "__new__")
    ]
    chosen = [maker for maker in makers if maker.name == "__init__"] or makers
    if chosen:
        return of_definitions(chosen, method=True)
    if any(
        isinstance(d, (ast.Name, ast.Attribute, ast.Call)) and "dataclass" in ast.unparse(d)
        for d in node.decorator_list
    ):
        fields = [
            inner.target.id
            for inner in node.body
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name)
        ]
        return (*fields, BASE)
    return (BASE,)


def _of_function(node: Function, bound: bool) -> tuple[str, ...]:
    given = node.args
    plain = [argument.arg for argument in given.args]
    if bound and not given.posonlyargs:
        plain = plain[1:]
    names = [*plain, *(argument.arg for argument in given.kwonlyargs)]
    if given.kwarg is None or given.kwarg.arg in _HANDED_ON:
        return tuple(names)
    return (*names, *_further(node, given.kwarg.arg))


def _further(node: Function, kwargs: str) -> list[str]:
    """What a function does with the keywords that it does not name."""
    found: list[str] = []
    settled, raised = 0, False
    uses = sum(isinstance(leaf, ast.Name) and leaf.id == kwargs for leaf in ast.walk(node))
    for leaf in ast.walk(node):
        word: Optional[ast.expr] = None
        if (
            isinstance(leaf, ast.Call)
            and isinstance(leaf.func, ast.Attribute)
            and _is(leaf.func.value, kwargs)
        ):
            word = leaf.args[0] if leaf.func.attr in ("pop", "get") and leaf.args else None
        elif isinstance(leaf, ast.Subscript) and _is(leaf.value, kwargs):
            word = leaf.slice
        elif (
            isinstance(leaf, ast.Compare) and len(leaf.comparators) == 1 and _is(leaf.comparators[0], kwargs)
        ):
            word = leaf.left
        elif isinstance(leaf, ast.If) and any(isinstance(inner, ast.Raise) for inner in leaf.body):
            inside = [leaf.test, *leaf.body]
            count = sum(_is(inner, kwargs) for part in inside for inner in ast.walk(part))
            if any(_is(inner, kwargs) for inner in ast.walk(leaf.test)) and not _asks_for_one(
                leaf.test, kwargs
            ):
                settled, raised = settled + count, True
        elif isinstance(leaf, ast.Call) and _is_super_init(leaf):
            for keyword in leaf.keywords:
                if keyword.arg is None and _is(keyword.value, kwargs):
                    found.append(BASE)
                    settled, raised = settled + 1, True
        if isinstance(word, ast.Constant) and isinstance(word.value, str):
            found.append(word.value)
            settled += 1
    return list(dict.fromkeys(found if raised and settled >= uses else [*found, OPEN]))


def _asks_for_one(test: ast.expr, kwargs: str) -> bool:
    return any(
        isinstance(leaf, (ast.Compare, ast.Subscript)) and kwargs in ast.unparse(leaf)
        for leaf in ast.walk(test)
        if not (isinstance(leaf, ast.Compare) and ast.unparse(leaf.left).startswith("len("))
    )


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_super_init(node: ast.Call) -> bool:
    return ast.unparse(node.func).startswith("super(") and ast.unparse(node.func).endswith(".__init__")
