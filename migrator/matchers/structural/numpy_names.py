"""Names of NumPy that its newer releases do not have: the environment of a newer torch comes with these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import is_asked_for, is_guarded
from migrator.names.index import ModuleIndex


class NumpyOptions(Options):
    """``names``: what is written for a name of NumPy, by its last part, in each release of NumPy.

    ``{numpy}`` in it is the module as the program names it; without that it is a name of Python's own.
    """

    names: dict[str, str] = field(default_factory=dict)


def find(context: FileContext, rule: Rule[NumpyOptions]) -> Iterator[Match]:
    """The uses of the names, as ``np.float``; those that an import brings by themselves are reported."""
    index = context.index
    for node, name in context.uses_of(rule):
        last = name.rpartition(".")[2]
        if is_guarded(index, node, [last]) or is_asked_for(index, node, "numpy.__version__"):
            continue
        edits = []
        text = rule.options.names.get(last, "")
        if text and isinstance(node, ast.Attribute) and not _is_taken(index, node, text):
            edits = [instead_of(index, node, text.replace("{numpy}", index.segment(node.value)))]
        yield found(context, rule, node, api=name, edits=edits)


def _is_taken(index: ModuleIndex, node: ast.Attribute, name: str) -> bool:
    """Whether a name of Python's own is another one there: a parameter ``str``, say."""
    return bool(index.scope_of(node).look_up(name))
