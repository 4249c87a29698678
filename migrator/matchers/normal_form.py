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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, takewhile
from typing import NamedTuple, Optional

from migrator.names.index import ModuleIndex
from migrator.names.tree import bare_name, hands_on

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
_DEEPEST = 12


class Term(NamedTuple):
    """An expression in normal form. ``node`` is where it is written."""

    kind: str
    label: str
    parts: tuple[Term, ...]
    node: ast.expr

    def same(self, other: Term) -> bool:
        """Whether both are the same expression."""
        return (
            self[:2] == other[:2]
            and len(self.parts) == len(other.parts)
            and all(mine.same(theirs) for mine, theirs in zip(self.parts, other.parts))
        )


@dataclass(frozen=True)
class PatternMatch:
    """What a pattern's variables stand for, and what had to be looked through to see it."""

    variables: Mapping[str, Term] = field(default_factory=dict)
    assignments: tuple[ast.Assign, ...] = ()  # statements whose values stand for names
    names: tuple[ast.Name, ...] = ()  # these names
    casts: bool = False


@cache
def compiled(pattern: str) -> Term:
    """A pattern in normal form. Raises SyntaxError for one that is no expression."""
    return _Reader(None).term(ast.parse(pattern, mode="eval").body)


def matched(index: ModuleIndex, pattern: Term, node: ast.expr) -> Optional[PatternMatch]:
    """What a pattern's variables stand for where it fits an expression, None where it does not."""
    reader = _Reader(index)
    return _fitted(reader, pattern, reader.term(node), PatternMatch(), 0)


def _fitted(
    reader: _Reader, pattern: Term, term: Term, so_far: PatternMatch, depth: int
) -> Optional[PatternMatch]:
    """What is known once the pattern is laid on the term; None where it does not fit."""
    if depth > 4 * _DEEPEST:
        return None
    if pattern.kind == "variable":
        known = so_far.variables.get(pattern.label)
        if known is None:
            return replace(so_far, variables={**so_far.variables, pattern.label: term})
        if known.same(term):
            return so_far
        return replace(so_far, casts=True) if _without_casts(known).same(_without_casts(term)) else None
    if pattern.kind == "within":
        return _inside(reader, pattern.parts[0], term, so_far, 0)
    if term.kind == "cast":
        return _fitted(reader, pattern, term.parts[0], replace(so_far, casts=True), depth + 1)
    if isinstance(term.node, ast.Name) and term.kind == "name" and pattern[:2] != term[:2]:
        value = reader.assigned(term.node)
        if value is None:
            return None
        assignments, names = (*so_far.assignments, value[1]), (*so_far.names, term.node)
        so_far = replace(so_far, assignments=assignments, names=names)
        return _fitted(reader, pattern, value[0], so_far, depth + 1)
    if pattern[:2] != term[:2] or len(pattern.parts) != len(term.parts):
        return None
    orders = [term.parts]
    if pattern.kind == "operator" and pattern.label in _EITHER_ORDER:
        orders.append(term.parts[::-1])
    for parts in orders:
        outcome: PatternMatch | None = so_far
        for wanted, part in zip(pattern.parts, parts):
            outcome = outcome and _fitted(reader, wanted, part, outcome, depth + 1)
        if outcome is not None:
            return outcome
    return None


def _without_casts(term: Term) -> Term:
    while term.kind == "cast":
        term = term.parts[0]
    return term


def _inside(
    reader: _Reader, pattern: Term, term: Term, so_far: PatternMatch, depth: int
) -> Optional[PatternMatch]:
    attempt = _fitted(reader, pattern, term, PatternMatch(so_far.variables), 0)
    if attempt is not None:  # what is around it is not part of the match
        return replace(so_far, variables=attempt.variables, casts=True)
    if depth > _DEEPEST:
        return None
    parts: Iterable[Term] = term.parts
    if isinstance(term.node, ast.Name) and term.kind == "name":
        value = reader.assigned(term.node)
        parts = () if value is None else value[:1]
    attempts = (_inside(reader, pattern, part, so_far, depth + 1) for part in parts)
    return next((attempt for attempt in attempts if attempt is not None), None)


class _Reader:
    """Brings expressions into normal form: of a file, or of a pattern where there is no index."""

    def __init__(self, index: ModuleIndex | None) -> None:
        self.index = index

    def term(self, node: ast.expr, depth: int = 0) -> Term:
        def made(kind: str, label: str, *parts: ast.expr) -> Term:
            return Term(kind, label, tuple(self.term(each, depth + 1) for each in parts), node)

        if depth > 4 * _DEEPEST:
            return made("other", "")
        name = self._qualified(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name:
            return made("reference", name)
        if isinstance(node, ast.Name):
            is_variable = self.index is None and _VARIABLE.match(node.id)
            return made("variable" if is_variable else "name", node.id)
        if isinstance(node, ast.Constant):
            value = (
                float(node.value) if isinstance(node.value, int) and node.value is not True else node.value
            )
            return made("constant", repr(value))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.term(node.operand, depth + 1)
            if inner.kind == "constant" and not inner.label.startswith("-"):
                return made("constant", f"-{inner.label}")
            return Term("operator", "neg", (inner,), node)
        if isinstance(node, ast.BinOp):
            return _squared(made("operator", _OPERATORS.get(type(node.op), "other"), node.left, node.right))
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Attribute):
            return made("attribute", node.attr, node.value)
        if isinstance(node, ast.Subscript):
            return made("item", "", node.value, node.slice)
        if isinstance(node, (ast.Tuple, ast.List)):
            return made("sequence", "", *node.elts)
        if isinstance(node, ast.Slice):
            none, ends = made("constant", "None"), (node.lower, node.upper, node.step)
            return Term("slice", "", tuple(self.term(end, depth + 1) if end else none for end in ends), node)
        return made("other", ast.dump(node) if self.index is None else str(id(node)))

    def _qualified(self, node: ast.AST) -> str:
        if self.index is not None:
            return self.index.qualified_name(node)
        text = ast.unparse(node)
        return text if text.split(".")[0] in ("torch", "math", "numpy") else ""

    def _call(self, node: ast.Call, depth: int) -> Term:
        def term(part: ast.expr) -> Term:
            return self.term(part, depth + 1)

        if self.index is None and isinstance(node.func, ast.Name) and node.func.id == "within":
            return Term("within", "", (term(node.args[0]),), node)
        name, other = self._qualified(node.func), Term("other", str(id(node)), (), node)
        if hands_on(node):
            return other
        last = name.rpartition(".")[2] if name else bare_name(node.func)
        last, rest = _SPELLINGS.get(last, last), node.args
        if name.startswith("torch.") or not isinstance(node.func, ast.Attribute):
            if name.split(".")[0] in _OTHER_LIBRARIES:
                return Term("call", name, tuple(map(term, node.args)), node)
            itself = rest[:1] or [each.value for each in node.keywords if each.arg in ("input", "tensors")]
            rest = rest[1:]
        else:
            itself = [node.func.value]
        if not itself or not last:
            return other
        receiver = term(itself[0])
        if last in _CASTS:
            return Term("cast", "", (receiver,), node)
        places = dict(enumerate(_PARAMETERS.get(last, ())))
        given = {places.get(place, str(place)): term(value) for place, value in enumerate(rest)}
        for keyword in node.keywords:
            if keyword.value is not itself[0]:
                label = _SPELLINGS.get(str(keyword.arg), str(keyword.arg))
                given[label] = term(keyword.value)
        if last in _COMPUTING and len(given) == (0 if last == "square" else 1):
            # x.add(y, alpha=2) is another one, and so is x.add(other=y) for all that is known.
            if last in ("matmul", "square", "pow") or "0" in given:
                return _squared(Term("operator", last, (receiver, *given.values()), node))
        labels = sorted(given)
        parts = (receiver, *(given[label] for label in labels))
        return Term("call", f"{last}({','.join(labels)})", parts, node)

    def assigned(self, node: ast.Name) -> tuple[Term, ast.Assign] | None:
        """What a name was last assigned before it is read, and the statement that does it."""
        if self.index is None:
            return None
        earlier = [
            binding.node
            for binding in self.index.scope_of(node).bindings.get(node.id, ())
            if isinstance(binding.node, ast.Assign) and (binding.node.end_lineno or 0) < node.lineno
        ]
        best = max(earlier, key=lambda statement: statement.lineno, default=None)
        if best is None or len(best.targets) != 1:
            return None
        self.index.expand(best)
        target, value = best.targets[0], best.value
        if isinstance(target, ast.Name):
            return self.term(value), best
        targets = target.elts if isinstance(target, ast.Tuple) else []
        for place, element in enumerate(targets):
            if isinstance(element, ast.Name) and element.id == node.id:
                if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets):
                    return self.term(value.elts[place]), best
                number = Term("constant", repr(float(place)), (), element)
                return Term("item", "", (self.term(value), number), element), best
        return None


def _squared(term: Term) -> Term:
    """``x ** 2``, ``x.pow(2)`` and ``x * x`` in one form."""
    if term.label == "pow" and term.parts[1].label == "2.0":
        return Term("operator", "square", (term.parts[0],), term.node)
    if term.label == "mul" and term.parts[0].kind != "variable" and term.parts[0].same(term.parts[1]):
        return Term("operator", "square", (term.parts[0],), term.node)
    return term


def ancestors(index: ModuleIndex, node: ast.expr) -> Iterator[ast.expr]:
    """A node and the expressions around it, the innermost first."""
    inside = takewhile(lambda up: not isinstance(up, ast.stmt), chain([node], index.above(node)))
    return (up for up in inside if isinstance(up, ast.expr))
