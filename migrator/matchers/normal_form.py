"""Expressions in one normal form, and patterns that are matched against it.

A pattern is a Python expression. A name in capital letters stands for any expression, the same one
wherever it occurs; ``within(P)`` for any expression that P is a part of. ``torch.f(x, …)``,
``F.f(x, …)`` and ``x.f(…)`` are one form, and so are ``x ** 2``, ``x * x`` and ``x.square()``;
sums and products match in either order. What a name was last assigned counts as written in its
place, and conversions of the data type are looked through.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, takewhile
from typing import NamedTuple, Optional

from migrator.matchers.query.shapes import shape
from migrator.names.index import ModuleIndex
from migrator.names.tree import bare_name, called_name, hands_on, only_target

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*\Z")
_CASTS = frozenset({"float", "half", "bfloat16", "to", "type_as", "contiguous"})
# The names of the positional arguments behind the tensor itself.
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "mean": ("dim", "keepdim"),
    "sum": ("dim", "keepdim"),
    "softmax": ("dim",),
    "log_softmax": ("dim",),
    "chunk": ("chunks", "dim"),
    "cat": ("dim",),
    "stack": ("dim",),
    "topk": ("k", "dim"),
    "masked_fill": ("mask", "value"),
    "gelu": ("approximate",),
}
_SPELLINGS = {"concat": "cat", "concatenate": "cat", "axis": "dim", "keepdims": "keepdim", "bmm": "matmul"}
_OPERATORS = {
    ast.Add: "add",
    ast.Mult: "mul",
    ast.Sub: "sub",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.FloorDiv: "floordiv",
}
_COMPUTING = frozenset({"matmul", "square", "pow", "add", "mul", "sub", "div"})
_EITHER_ORDER = frozenset({"add", "mul"})
_OTHER_LIBRARIES = frozenset({"math", "numpy", "jax", "tensorflow"})
_CAST = "cast"
_DEEPEST = 12

Form = tuple[str, list[ast.expr]]  # what an expression computes, and of which others


class PatternMatch(NamedTuple):
    """What a pattern's variables stand for, and what had to be looked through to see it."""

    variables: Mapping[str, ast.expr]
    assignments: tuple[ast.Assign, ...] = ()  # statements whose values stand for names
    names: tuple[ast.Name, ...] = ()  # these names
    casts: bool = False


def matched(index: ModuleIndex, pattern: str, node: ast.expr) -> Optional[PatternMatch]:
    """What a pattern's variables stand for where it fits an expression, None where it does not."""
    return _Reader(index).fitted(shape(pattern), node, PatternMatch({}))


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and _VARIABLE.match(node.id) is not None


@cache
def _wanted(pattern: ast.expr) -> Form:
    return _Reader(None).form(pattern)


class _Reader(NamedTuple):
    """Brings expressions into normal form: of a file, or of a pattern where there is no index."""

    file: Optional[ModuleIndex]

    def fitted(
        self, pattern: ast.expr, node: ast.expr, so_far: PatternMatch, depth: int = 0
    ) -> Optional[PatternMatch]:
        """What is known once the pattern is laid on the expression; None where it does not fit."""
        if depth > 4 * _DEEPEST:
            return None
        if isinstance(pattern, ast.Name) and _is_variable(pattern):
            known = so_far.variables.get(pattern.id)
            if known is None:
                return so_far._replace(variables={**so_far.variables, pattern.id: node})
            if self.same(known, node):
                return so_far
            alike = self.same(self.without_casts(known), self.without_casts(node))
            return so_far._replace(casts=True) if alike else None
        if isinstance(pattern, ast.Call) and called_name(pattern) == "within":
            return self.inside(pattern.args[0], node, so_far)
        (wanted, inner), (label, parts) = _wanted(pattern), self.form(node)
        if label == _CAST:
            return self.fitted(pattern, parts[0], so_far._replace(casts=True), depth + 1)
        if label != wanted and (value := self.assigned(node, label)) is not None:
            expression, statement, name = value
            assignments, names = (*so_far.assignments, statement), (*so_far.names, name)
            so_far = so_far._replace(assignments=assignments, names=names)
            return self.fitted(pattern, expression, so_far, depth + 1)
        if label != wanted or len(parts) != len(inner):
            return None
        for order in (parts, parts[::-1]) if label in _EITHER_ORDER else (parts,):
            outcome: Optional[PatternMatch] = so_far
            for each, part in zip(inner, order):
                outcome = outcome and self.fitted(each, part, outcome, depth + 1)
            if outcome is not None:
                return outcome
        return None

    def inside(
        self, pattern: ast.expr, node: ast.expr, so_far: PatternMatch, depth: int = 0
    ) -> Optional[PatternMatch]:
        """The same for an expression of which the pattern fits a part."""
        attempt = self.fitted(pattern, node, PatternMatch(so_far.variables))
        if attempt is not None:  # what is around it is not part of the match
            return so_far._replace(variables=attempt.variables, casts=True)
        if depth > _DEEPEST:
            return None
        label, parts = self.form(node)
        value = self.assigned(node, label)
        parts = parts if value is None else [value[0]]
        return next(filter(None, (self.inside(pattern, part, so_far, depth + 1) for part in parts)), None)

    def same(self, one: ast.expr, other: ast.expr, depth: int = 0) -> bool:
        """Whether both are the same expression."""
        (label, parts), (another, others) = self.form(one), self.form(other)
        is_like = label == another and len(parts) == len(others) and depth <= 4 * _DEEPEST
        return is_like and all(self.same(*each, depth + 1) for each in zip(parts, others))

    def without_casts(self, node: ast.expr) -> ast.expr:
        """What is converted to another data type."""
        label, parts = self.form(node)
        return self.without_casts(parts[0]) if label == _CAST else node

    def form(self, node: ast.expr) -> Form:
        """What an expression computes: a name, a value, an operator, a function with its arguments."""
        name = self.full_name(node)
        if name:
            return name, []
        if isinstance(node, ast.Name):
            return f"name {node.id}", []
        if isinstance(node, ast.Constant):
            is_number = isinstance(node.value, int) and node.value is not True
            return repr(float(node.value) if is_number else node.value), []  # type: ignore[arg-type]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            is_number = isinstance(node.operand, ast.Constant)
            return (f"-{self.form(node.operand)[0]}", []) if is_number else ("neg", [node.operand])
        if isinstance(node, ast.BinOp):
            return self.squared(_OPERATORS.get(type(node.op), "other"), [node.left, node.right])
        if isinstance(node, ast.Call) and not hands_on(node):
            return self.called(node)
        if isinstance(node, ast.Attribute):
            return f".{node.attr}", [node.value]
        if isinstance(node, ast.Subscript):
            return "[]", [node.value, node.slice]
        if isinstance(node, (ast.Tuple, ast.List)):
            return "()", node.elts
        if isinstance(node, ast.Slice):
            return ":", [end or ast.Constant(None) for end in (node.lower, node.upper, node.step)]
        return f"other {id(node)}", []

    def full_name(self, node: ast.expr) -> str:
        """The full name of a name or an attribute; of a pattern's, where it begins with a library."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ""
        if self.file is not None:
            return self.file.qualified_name(node)
        text = ast.unparse(node)
        return text if text.split(".")[0] in ("torch", "math", "numpy") else ""

    def called(self, node: ast.Call) -> Form:
        """The form of a call: ``torch.f(x, …)`` and ``x.f(…)`` are one."""
        name, rest = self.full_name(node.func), node.args
        last = name.rpartition(".")[2] or bare_name(node.func)
        last = _SPELLINGS.get(last, last)
        if name.startswith("torch.") or not isinstance(node.func, ast.Attribute):
            if name.split(".")[0] in _OTHER_LIBRARIES:
                return f"{name}()", node.args
            by_keyword = (each.value for each in node.keywords if each.arg in ("input", "tensors"))
            itself, rest = next(iter([*rest[:1], *by_keyword]), None), rest[1:]
        else:
            itself = node.func.value
        if itself is None or not last:
            return f"other {id(node)}", []
        if last in _CASTS:
            return _CAST, [itself]
        places = dict(enumerate(_PARAMETERS.get(last, ())))
        given = {places.get(place, str(place)): value for place, value in enumerate(rest)}
        for keyword in node.keywords:
            if keyword.value is not itself:
                given[_SPELLINGS.get(str(keyword.arg), str(keyword.arg))] = keyword.value
        if last in _COMPUTING and len(given) == (0 if last == "square" else 1):
            # x.add(y, alpha=2) is another one, and so is x.add(other=y) for all that is known.
            if last in ("matmul", "square", "pow") or "0" in given:
                return self.squared(last, [itself, *given.values()])
        labels = sorted(given)
        return f"{last}({','.join(labels)})", [itself, *(given[label] for label in labels)]

    def squared(self, label: str, parts: list[ast.expr]) -> Form:
        """``x ** 2``, ``x.pow(2)`` and ``x * x`` in one form."""
        first, last = parts[0], parts[-1]
        twice = label == "mul" and type(first) is type(last) and self.same(first, last)
        if twice and not (self.file is None and _is_variable(first)):
            return "square", [first]
        return ("square", [first]) if label == "pow" and self.form(last)[0] == "2.0" else (label, parts)

    def assigned(self, node: ast.expr, label: str) -> Optional[tuple[ast.expr, ast.Assign, ast.Name]]:
        """What a name was last assigned before it is read, and the statement that does it."""
        if self.file is None or not isinstance(node, ast.Name) or not label.startswith("name "):
            return None
        earlier = [
            binding.node
            for binding in self.file.scope_of(node).bindings.get(node.id, ())
            if isinstance(binding.node, ast.Assign) and (binding.node.end_lineno or 0) < node.lineno
        ]
        best = max(earlier, key=lambda statement: statement.lineno, default=None)
        target = only_target(best)
        if best is None or target is None:
            return None
        self.file.expand(best)
        value = best.value
        if isinstance(target, ast.Name):
            return value, best, node
        targets = target.elts if isinstance(target, ast.Tuple) else []
        place = next((n for n, each in enumerate(targets) if bare_name(each) == node.id), None)
        if place is None or not isinstance(targets[place], ast.Name):
            return None
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets):
            return value.elts[place], best, node
        item = ast.Subscript(value, ast.Constant(place), ast.Load())
        return ast.copy_location(item, targets[place]), best, node


def ancestors(index: ModuleIndex, node: ast.expr) -> Iterator[ast.expr]:
    """A node and the expressions around it, the innermost first."""
    inside = takewhile(lambda up: not isinstance(up, ast.stmt), chain([node], index.above(node)))
    return (up for up in inside if isinstance(up, ast.expr))
