"""What reaches a reducing collective: its tensors, and through functions of the file what these are given."""

from __future__ import annotations

import ast
from typing import Callable, NamedTuple

from migrator.names.flow import Parameter, given, sources
from migrator.names.index import ModuleIndex
from migrator.names.tree import Function

_TENSORS = ("tensor", "output", "input")


class Reduced(NamedTuple):
    """An expression whose value is reduced over the ranks: by the collective ``api``."""

    value: ast.expr
    api: str


def reduced(index: ModuleIndex, reduces: Callable[[str], bool]) -> tuple[list[Reduced], list[Parameter]]:
    """The values of a file that collectives reduce, and the parameters by which others hand them in.

    ``reduces`` says of a qualified name whether it is such a collective.
    """
    found: list[Reduced] = []
    handed_in: dict[tuple[Function, int], Parameter] = {}
    waiting = [
        Reduced(value, name)
        for call in index.calls
        if (name := index.qualified_name(call.func)) and reduces(name)
        for value in (*call.args[:2], *(item.value for item in call.keywords if item.arg in _TENSORS))
    ]
    while waiting:
        item = waiting.pop()
        found.append(item)
        for source in sources(index, item.value):
            if isinstance(source, Parameter) and (source.function, source.place) not in handed_in:
                handed_in[source.function, source.place] = source
                waiting += [Reduced(value, item.api) for value in given(index, source)]
    return found, list(handed_in.values())
