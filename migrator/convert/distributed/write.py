"""The changes of a plan, made on a whole file by LibCST: comments and formatting stay."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

Rewrite = Callable[[Any], Any]
_EMPTY = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
_Key = tuple[int, int, int, int]


class NotPlacedError(Exception):
    """A change whose place LibCST does not see where the plan does."""


@dataclass
class Changes:
    """What changes in one file, by the nodes of its ``ast``. ``header`` goes behind its first imports.

    So do ``helpers`` before it: functions by their names.
    """

    expressions: dict[Any, Rewrite] = field(default_factory=dict)
    before: dict[Any, list[str]] = field(default_factory=dict)
    after: dict[Any, list[str]] = field(default_factory=dict)
    first: dict[Any, list[str]] = field(default_factory=dict)  # in the body of a compound statement
    last: dict[Any, list[str]] = field(default_factory=dict)
    guards: dict[Any, str] = field(default_factory=dict)
    removed: set[Any] = field(default_factory=set)  # with "after", those lines take its place
    dissolved: set[Any] = field(default_factory=set)  # of a with statement the body stays
    contexts: dict[Any, tuple[Any, str]] = field(default_factory=dict)  # first statement: last one, context
    imports: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    header: str = ""
    end: list[str] = field(default_factory=list)


def write(text: str, changes: Changes) -> str:
    """The text with the changes. Raises NotPlacedError where one of them finds no place."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    writer = _Writer(text, changes)
    module = wrapper.visit(writer)
    if writer.waiting:
        raise NotPlacedError(f"{len(writer.waiting)} places, the first in line {min(writer.waiting)[0]}")
    return str(_with_header(module, changes).code)


def replaced(code: str) -> Rewrite:
    """An expression in place of another one."""
    return lambda node: cst.parse_expression(code)


def suffixed(attribute: str) -> Rewrite:
    """An attribute of the expression in its place."""
    return lambda node: cst.Attribute(node, cst.Name(attribute))


def unwrapped(node: Any) -> Any:
    """``.module`` of an expression that may have none."""
    code = cst.Module([]).code_for_node(node)
    return cst.parse_expression(f'getattr({code}, "module", {code})')


def arguments(drop: Sequence[int], add: Sequence[str]) -> Rewrite:
    """A call without the arguments at these places, and with others before its ``**`` ones."""

    def rewrite(call: Any) -> Any:
        new = [cst.ensure_type(cst.parse_expression(f"f({code})"), cst.Call).args[0] for code in add]
        old = [arg for number, arg in enumerate(call.args) if number not in drop]
        positional = [number for number in drop if number < sum(arg.keyword is None for arg in call.args)]
        named = [number for number in drop if number not in positional]
        if named:  # in the place of the first, on its line
            place = named[0] - sum(number < named[0] for number in drop)
        else:
            place = sum(arg.star != "**" for arg in old)
        every = [*old[:place], *new, *old[place:]]
        plain = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        commas: list[Any] = [arg.comma if isinstance(arg.comma, cst.Comma) else plain for arg in every]
        if named and new:
            kept = call.args[named[0]].comma
            commas[place + len(new) - 1] = kept if isinstance(kept, cst.Comma) else plain
        if every:
            commas[-1] = call.args[-1].comma
        return call.with_changes(args=[arg.with_changes(comma=c) for arg, c in zip(every, commas)])

    return rewrite


def first_argument(node: Any) -> Any:
    """The first argument of a call in the call's place."""
    return node.args[0].value


class _Writer(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, text: str, changes: Changes) -> None:
        super().__init__()
        self._lines = re.split(r"\r\n|\r|\n", text)  # what Python takes for the end of a line
        self._changes = changes
        self._expressions = {self._key(node): rewrite for node, rewrite in changes.expressions.items()}
        at = self._starts
        self._before, self._after = at(changes.before), at(changes.after)
        self._first, self._last = at(changes.first), at(changes.last)
        self._guards, self._removed = at(changes.guards), {self._start(node) for node in changes.removed}
        self._dissolved = {self._start(node) for node in changes.dissolved}
        self._contexts = {
            self._start(node): (self._start(last), context)
            for node, (last, context) in changes.contexts.items()
        }
        self.waiting: set[Any] = {
            *self._expressions,
            *self._before,
            *self._after,
            *self._first,
            *self._last,
            *self._guards,
            *self._removed,
            *self._dissolved,
            *((*first, *last) for first, (last, _) in self._contexts.items()),
        }

    def _starts(self, table: dict[Any, Any]) -> dict[tuple[int, int], Any]:
        return {self._start(node): value for node, value in table.items()}

    def _column(self, line: int, offset: int) -> int:
        return len(self._lines[line - 1].encode("utf-8")[:offset].decode("utf-8"))

    def _start(self, node: ast.stmt) -> tuple[int, int]:
        return node.lineno, self._column(node.lineno, node.col_offset)

    def _key(self, node: Any) -> _Key:
        end = node.end_lineno, self._column(node.end_lineno, node.end_col_offset)
        return (*self._start(node), *end)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        node: Any = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.BaseExpression):
            place = self.get_metadata(PositionProvider, original_node)
            key = (place.start.line, place.start.column, place.end.line, place.end.column)
            if key in self._expressions and key in self.waiting:
                self.waiting.discard(key)
                return self._expressions[key](node)
        elif isinstance(original_node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            place = self.get_metadata(PositionProvider, original_node)
            return self._statement((place.start.line, place.start.column), node)
        elif isinstance(original_node, (cst.IndentedBlock, cst.Module)) and self._contexts:
            return node.with_changes(body=self._in_contexts(original_node, node))
        return node

    def _statement(self, key: tuple[int, int], node: Any) -> Any:
        self.waiting.discard(key)
        if key in self._first or key in self._last:
            block = node.body
            body = [*_parsed(self._first.get(key, [])), *block.body, *_parsed(self._last.get(key, []))]
            node = node.with_changes(body=block.with_changes(body=body))
        if key in self._removed:
            instead = _parsed(self._after.get(key, []))
            if not instead:
                return cst.RemoveFromParent()
            instead[0] = instead[0].with_changes(leading_lines=node.leading_lines)
            return cst.FlattenSentinel(instead)
        if key in self._dissolved:
            inner = _statements(node.body)
            inner[0] = inner[0].with_changes(
                leading_lines=[*node.leading_lines, *getattr(inner[0], "leading_lines", ())]
            )
            return cst.FlattenSentinel(inner)
        if key in self._guards:
            inside = cst.IndentedBlock([node.with_changes(leading_lines=())])
            test = cst.parse_expression(self._guards[key])
            node = cst.If(test, inside, leading_lines=node.leading_lines)
        before, after = _parsed(self._before.get(key, [])), _parsed(self._after.get(key, []))
        if before:
            before[0] = before[0].with_changes(leading_lines=node.leading_lines)
            node = node.with_changes(leading_lines=())
        return cst.FlattenSentinel([*before, node, *after]) if before or after else node

    def _in_contexts(self, original: Any, updated: Any) -> list[Any]:
        """The statements of a block; those between two ends in a ``with``."""
        starts = []
        for statement in original.body:
            place = self.get_metadata(PositionProvider, statement).start
            starts.append((place.line, place.column))
        body = list(updated.body)
        for first, (last, context) in self._contexts.items():
            if first in starts and last in starts and len(body) == len(starts):
                self.waiting.discard((*first, *last))
                begin, end = starts.index(first), starts.index(last)
                inside = body[begin : end + 1]
                block = cst.IndentedBlock([inside[0].with_changes(leading_lines=()), *inside[1:]])
                with_ = cst.ensure_type(cst.parse_statement(f"with {context}:\n    pass"), cst.With)
                body[begin : end + 1] = [
                    with_.with_changes(body=block, leading_lines=inside[0].leading_lines)
                ]
                starts[begin : end + 1] = [first]
        return body


def _statements(body: Any) -> list[Any]:
    """The statements of a block, also of one that stands behind its colon."""
    if isinstance(body, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)]
    return list(body.body)


def _parsed(lines: Sequence[str]) -> list[Any]:
    return [cst.parse_statement(line) for line in lines]


def _with_header(module: Any, changes: Changes) -> Any:
    """The module with its new imports behind those at its top, then the set-up, and its last lines."""
    body = list(module.body)
    place = _behind_imports(body)
    wanted = dict.fromkeys(changes.imports)
    there = {f"import {name}" for name in _imported(body)} | set(module.code.splitlines())
    new = _parsed([line for line in wanted if line not in there])
    rest: list[Any] = []
    header = "\n\n".join([*changes.helpers.values(), *([changes.header] if changes.header else [])])
    if header:
        rest = list(cst.parse_module(header).body)
        place = min(place, _first_use(body, rest))
        rest[0] = rest[0].with_changes(leading_lines=_EMPTY)
        if place < len(body) and rest:
            lines = list(body[place].leading_lines)
            while lines and lines[0].comment is None:
                lines.pop(0)
            body[place] = body[place].with_changes(leading_lines=[*_EMPTY, *lines])
    return module.with_changes(body=[*body[:place], *new, *rest, *body[place:], *_parsed(changes.end)])


def _first_use(body: Sequence[Any], header: Sequence[Any]) -> int:
    """The first statement that does something with what the header defines: the header goes before it."""
    names = [one.name.value for one in header if isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None
    for number, statement in enumerate(body):
        if word is None or isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            continue
        if word.search(cst.Module([statement]).code):
            return number
    return len(body)


def _imported(body: Sequence[Any]) -> set[str]:
    """The modules that plain imports at the margin bind under their own names."""
    found = set()
    for statement in body:
        for one in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(one, cst.Import):
                found |= {alias.evaluated_name for alias in one.names if alias.asname is None}
    return found


def _behind_imports(body: Sequence[Any]) -> int:
    """Behind the last import before the first statement that defines or does something."""
    place = 0
    for number, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine):
            if any(isinstance(one, (cst.Import, cst.ImportFrom)) for one in statement.body):
                place = number + 1
            elif number == 0 and place == 0 and isinstance(statement.body[0], cst.Expr):
                place = 1  # the docstring
        elif isinstance(statement, (cst.FunctionDef, cst.ClassDef, cst.For, cst.While)):
            break
    return place
