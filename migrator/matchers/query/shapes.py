"""Code as a rule writes it, compared with an expression of a file.

A shape is a Python expression. In it ``_`` stands for any expression, a capital letter for one that
conditions and templates may name, ``...`` as the last argument of a call for any further ones. A dotted name
stands for what it names in full, through any alias: ``torch.stack(_, dim=-1)``; a method is ``_.byte()``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Optional

from migrator.light import NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.made_from import last_assigned, loops
from migrator.names.tree import (
    bare_name,
    called_name,
    elements,
    fields_of,
    hands_on,
    holder_of,
    is_none,
    root,
)

_LETTER = re.compile(r"[A-Z]\Z")


@cache
def shape(text: str) -> ast.expr:
    """The shape that a text writes. Raises SyntaxError where it is not an expression."""
    return ast.parse(" ".join(text.split()), mode="eval").body


def letters_of(text: str) -> set[str]:
    """The letters of a shape that stand for expressions. Raises what ``shape`` raises."""
    names = (each.id for each in ast.walk(shape(text)) if isinstance(each, ast.Name))
    return {*filter(_LETTER.match, names)}


class Comparison(NamedTuple):
    """How expressions of a file are compared with shapes.

    ``letters`` gets what the letters stand for. With ``follows`` a name, or an attribute of ``self``, is what
    it is assigned, one of several what they all are: all of that has to fit, or any. A call of a method in
    ``through`` is what it is called on.
    """

    file: ModuleIndex
    letters: dict[str, ast.expr]
    follows: Optional[Callable[[Iterable[bool]], bool]] = None  # all, any
    through: Collection[str] = ()
    above: tuple[ast.AST, ...] = ()  # the names that are followed

    def holds(self, texts: Iterable[str], node: ast.AST | None) -> bool:
        """Whether an expression is written like a shape of some texts; only then letters are known."""
        return self._fits([shape(text) for text in texts], node)

    def _fits(self, shapes: Sequence[ast.AST], node: ast.AST | None) -> bool:
        for each in shapes:
            trial = self._replace(letters=dict(self.letters))
            if trial._is_written(each, node):
                self.letters.update(trial.letters)
                return True
        holder = holder_of(node) if isinstance(node, ast.Call) else None
        if holder is not None and called_name(node) in self.through:
            return self._fits(shapes, holder)
        if self.follows is None or node is None or node in self.above:
            return False
        known = [each for each in self._values(node) if not is_none(each)]
        inner = self._replace(above=(*self.above, node))
        return bool(known) and self.follows(inner._fits(shapes, each) for each in known)

    def _values(self, node: ast.AST) -> list[ast.expr]:
        """What a name or an attribute is assigned; what all are of which it is one."""
        if isinstance(node, ast.Attribute):
            return self.file.stored_as(node)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self._in(node.value)
        if not isinstance(node, ast.Name):
            return []
        last = last_assigned(self.file, node) if self.follows is all else None
        if last is not None and last.kind == "assign" and last.value is not None:
            self.file.expand(last.node)
            return [last.value]
        looped = [loop.iter for loop in loops(self.file, node) if bare_name(loop.target) == node.id]
        if len(looped) == 1:
            return self._in(looped[0])
        return self.file.assigned(node) if self.follows is any else self.file.only_assigned(node)

    def _in(self, node: ast.AST) -> list[ast.expr]:
        """What a list that is written, or made by a comprehension, has in it."""
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return [node.elt]
        found = elements(node)
        if not found and node not in self.above:
            values = self._replace(above=(*self.above, node))._values(node)
            found = self._in(values[0]) if len(values) == 1 else []
        return found

    def _part(self, shape: ast.AST, node: ast.AST | None) -> bool:
        return self._fits([shape], node)

    def _is_written(self, shape: ast.AST, node: ast.AST | None) -> bool:
        if isinstance(shape, ast.Name) and shape.id == "_":
            return node is not None
        if isinstance(shape, ast.Name) and _LETTER.match(shape.id) and isinstance(node, ast.expr):
            known = self.letters.setdefault(shape.id, node)
            return known is node or ast.dump(known) == ast.dump(node)
        base = root(shape) if isinstance(shape, (ast.Attribute, ast.Name)) else None
        if isinstance(base, ast.Name) and base.id != "_" and not _LETTER.match(base.id):
            name = ast.unparse(shape)  # written in full
            plain = isinstance(node, ast.Name) and node.id == name and not self.file.bindings(node)
            return plain or (isinstance(node, ast.expr) and self.file.qualified_name(node) == name)
        if node is None or shape.__class__ is not node.__class__:
            return False
        if isinstance(shape, ast.Call) and isinstance(node, ast.Call):
            return self._is_call(shape, node)
        if isinstance(shape, ast.Constant) and isinstance(node, ast.Constant):
            return type(shape.value) is type(node.value) and shape.value == node.value
        of_shape, of_node = (getattr(each, "ops", [getattr(each, "op", None)]) for each in (shape, node))
        if [*map(type, of_shape)] != [*map(type, of_node)]:
            return False
        return all(self._part_fits(getattr(shape, key), getattr(node, key)) for key in fields_of(type(shape)))

    def _part_fits(self, shape: object, node: object) -> bool:
        if isinstance(shape, list) and isinstance(node, list):
            return len(shape) == len(node) and all(map(self._part_fits, shape, node))
        if isinstance(shape, ast.AST) and isinstance(node, ast.AST):
            return self._part(shape, node)
        return shape == node

    def _is_call(self, shape: ast.Call, node: ast.Call) -> bool:
        places, open_ended = shape.args, False
        if places and isinstance(places[-1], ast.Constant) and places[-1].value is Ellipsis:
            places, open_ended = places[:-1], True
        wanted = {each.arg: each.value for each in shape.keywords}
        given = {each.arg: each.value for each in node.keywords}
        if hands_on(node) or len(node.args) < len(places):
            return False
        if not open_ended and (len(node.args) > len(places) or given.keys() != wanted.keys()):
            return False
        if not self._part(shape.func, node.func) or not all(map(self._part, places, node.args)):
            return False
        return all(self._part(value, given.get(name)) for name, value in wanted.items())
