"""The planned changes of a file, as edits of its text: what they do not touch stays as it is."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from migrator.findings.edits import apply
from migrator.findings.finding import Edit
from migrator.light import Frozen
from migrator.matchers.argument_edits import added_argument
from migrator.names.index import ModuleIndex
from migrator.names.tree import head_lines, parse

_MARKS = re.compile(rb"#[^\r\n]*|[(),]")
_FSTRING_MIDDLE = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class NotPlacedError(Exception):
    """A change that has no place in the text."""


@dataclass
class Changes:
    """What changes in one file, by its statements; ``edits`` are those inside of statements.

    ``header`` goes behind the first imports.
    """

    edits: list[Edit] = field(default_factory=list)
    before: dict[ast.stmt, list[str]] = field(default_factory=dict)
    after: dict[ast.stmt, list[str]] = field(default_factory=dict)
    first: dict[ast.stmt, list[str]] = field(default_factory=dict)  # in the body of a compound statement
    last: dict[ast.stmt, list[str]] = field(default_factory=dict)
    # first: last, the block's head
    around: dict[ast.stmt, tuple[ast.stmt, str]] = field(default_factory=dict)
    removed: set[ast.stmt] = field(default_factory=set)  # with "after", those lines take its place
    imports: list[str] = field(default_factory=list)
    header: str = ""
    end: list[str] = field(default_factory=list)


# -- inside of statements -------------------------------------------------


def first_argument(index: ModuleIndex, call: ast.Call) -> list[Edit]:
    """The first argument of a call in the call's place."""
    start, end = _argument_spans(index, call)[0]
    return [Edit(index.start(call), start, ""), Edit(end, index.end(call), "")]


def changed_arguments(
    index: ModuleIndex, call: ast.Call, drop: Sequence[int], add: Sequence[str]
) -> list[Edit]:
    """Edits that take the arguments at these places away from a call, and add others before its ``**`` ones.

    They come in the place of the first keyword argument that goes, where one does.
    """
    spans, closing, new = _argument_spans(index, call), index.end(call) - 1, ", ".join(add)
    count = len(spans)
    stars = [number for number, word in enumerate(call.keywords, len(call.args)) if word.arg is None]
    stars = [number for number in stars if number not in drop]
    texts = dict.fromkeys(drop, "")
    named = [number for number in drop if number >= len(call.args)]
    edits = []
    if new and (named or (count - 1 in drop and not stars)):
        texts[named[0] if named else count - 1] = new
    elif new and stars:
        edits.append(Edit(spans[stars[0]][0], spans[stars[0]][0], f"{new}, "))
    elif new:
        edits += added_argument(index, call, "", new)
    for number, text in texts.items():
        start, end = spans[number]
        if text:
            edits.append(Edit(start, end, text))
        elif any(texts.get(other, "kept") for other in range(number + 1, count)):
            edits.append(Edit(start, spans[number + 1][0], ""))
        elif number and any(texts.get(other, "kept") for other in range(number)):
            edits.append(Edit(spans[number - 1][1], end, ""))
        else:
            edits.append(Edit(start, closing, ""))
    return edits


def added_parameter(index: ModuleIndex, function: ast.FunctionDef | ast.AsyncFunctionDef, code: str) -> Edit:
    """A parameter behind the others of a function, before its ``**`` one."""
    given = function.args
    if given.kwarg is not None:
        at = index.data.rindex(b"**", 0, index.start(given.kwarg))
        return Edit(at, at, f"{code}, ")
    named = [*given.args, *given.kwonlyargs, *([given.vararg] if given.vararg else [])]
    nodes = [*named, *given.defaults, *(one for one in given.kw_defaults if one is not None)]
    if not nodes:
        at = index.data.index(b"(", index.start(function)) + 1
        return Edit(at, at, code)
    at = max(map(index.end, nodes))
    return Edit(at, at, f", {code}")


def _argument_spans(index: ModuleIndex, call: ast.Call) -> list[tuple[int, int]]:
    """Where each argument begins and ends, with the parentheses around it."""
    nodes = sorted([*call.args, *call.keywords], key=index.start)
    starts, ends = [index.start(node) for node in nodes], [index.end(node) for node in nodes]
    gaps = zip([index.end(call.func), *ends], [*starts, index.end(call) - 1])
    for number, (begin, end) in enumerate(gaps):
        behind = False  # the comma, or the parenthesis of the call
        for mark in _MARKS.finditer(index.data, begin, max(begin, end)):
            if mark[0] == b"(" and behind:
                starts[number] = mark.start()
                break
            if mark[0] == b")" and not behind and number:
                ends[number - 1] = mark.end()
            behind = behind or mark[0] == (b"," if number else b"(")
    return list(zip(starts, ends))


def _blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements below a compound statement, in the order of the text."""
    found = [getattr(statement, "body", [])]
    found += [one.body for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
    found += [getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
    return [block for block in found if block]


# -- whole statements -----------------------------------------------------


class _Layout(Frozen):
    """How a file is laid out: its line end, a step of indentation, the lines that begin inside a string."""

    index: ModuleIndex
    newline: str
    step: str
    fixed: frozenset[int]


def _layout(index: ModuleIndex) -> _Layout:
    step = ""
    fixed: set[int] = set()
    text = index.text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.INDENT:
                step = step or token.string
            elif token.type in (tokenize.STRING, _FSTRING_MIDDLE):
                fixed.update(range(token.start[0] + 1, token.end[0] + 1))
    except tokenize.TokenError as error:
        raise NotPlacedError(str(error)) from error
    ends = re.search(r"\r\n|\r|\n", index.text)
    return _Layout(index, ends[0] if ends else "\n", step or "    ", frozenset(fixed))


def write(index: ModuleIndex, changes: Changes) -> tuple[Edit, ...]:
    """The edits that make all changes of a file.

    Raises NotPlacedError or SyntaxError where one of them has no place.
    """
    layout = _layout(index)
    edits = [*_around(layout, changes), *_moved(layout, changes)]
    if changes.end:
        edits.append(_inserted(layout, _end(layout, index.tree.body[-1]), changes.end, ""))
    edits += changes.edits
    every = _outermost([*_at_top(layout, changes, edits), *edits])
    parse(apply(index.data, every).decode("utf-8"))
    return every


def _outermost(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that are not inside of others; of two of the same place the later one."""

    def covers(outer: Edit, edit: Edit) -> bool:
        if edit.start == edit.end:
            return outer.start < edit.start < outer.end
        return outer is not edit and outer.start <= edit.start and edit.end <= outer.end

    wide = {(edit.start, edit.end): edit for edit in edits if edit.end > edit.start}
    kept = [edit for edit in edits if edit.start == edit.end or wide[edit.start, edit.end] is edit]
    return tuple(edit for edit in kept if not any(covers(other, edit) for other in wide.values()))


def _around(layout: _Layout, changes: Changes) -> Iterator[Edit]:
    """The lines before and behind statements, in their places, and first and last in their bodies."""
    for statement, lines in changes.before.items():
        start, indent = _line(layout, statement)
        yield _inserted(layout, start, lines, indent)
    for statement in changes.removed:
        start, indent = _line(layout, statement)
        lines = changes.after.get(statement, [])
        start = start if lines else _behind_previous(layout, statement)
        yield Edit(start, _end(layout, statement), _text(layout, lines, indent))
    for statement, lines in changes.after.items():
        if statement not in changes.removed:
            yield _inserted(layout, _end(layout, statement), lines, _line(layout, statement)[1])
    for statement, lines in changes.first.items():
        body = _blocks(statement)[0]
        yield _inserted(layout, _body_start(layout, statement), lines, _line(layout, body[0])[1])
    for statement, lines in changes.last.items():
        body = _blocks(statement)[0]
        yield _inserted(layout, _end(layout, body[-1]), lines, _line(layout, body[0])[1])


def _moved(layout: _Layout, changes: Changes) -> Iterator[Edit]:
    """Statements that come into a block of their own, or out of one."""
    index = layout.index
    for first, (last, head) in changes.around.items():
        start, indent = _line(layout, first)
        yield _inserted(layout, start, [head], indent)
        for line in range(first.lineno, index.line_of(_end(layout, last) - 1) + 1):
            start, end = index.line_span(line, line)
            if line not in layout.fixed and index.data[start:end].strip():
                yield Edit(start, start, layout.step)


def _inserted(layout: _Layout, at: int, lines: Sequence[str], indent: str) -> Edit:
    """New lines at the beginning of a line, or behind the last one, which may have no end."""
    text = _text(layout, lines, indent)
    if layout.index.data[:at].endswith((b"\n", b"\r")) or not at:
        return Edit(at, at, text)
    return Edit(at, at, layout.newline + text[: -len(layout.newline)])


def _text(layout: _Layout, lines: Sequence[str], indent: str) -> str:
    """Lines of code in the file's own layout."""
    result = ""
    for line in "\n".join(lines).split("\n") if lines else ():
        code = line.lstrip(" ")
        steps = layout.step * ((len(line) - len(code)) // 4)
        result += f"{indent}{steps}{code}{layout.newline}" if code else layout.newline
    return result


def _line(layout: _Layout, statement: ast.stmt) -> tuple[int, str]:
    """Where a statement's line begins, and its indentation. Raises NotPlacedError where it has none."""
    index = layout.index
    start = index.line_span(statement.lineno, statement.lineno)[0]
    indent = index.data[start : index.start(statement)].decode("utf-8")
    if indent.strip():
        raise NotPlacedError(f"in line {statement.lineno}")
    return start, indent


def _body_start(layout: _Layout, statement: ast.AST) -> int:
    """Where the first line behind the head of a compound statement begins."""
    line = head_lines(_blocks(statement)[0][0])[0] - 1
    while _is_empty_or_comment(layout, line):
        line -= 1
    return layout.index.line_span(line, line)[1]


def _is_empty_or_comment(layout: _Layout, line: int) -> bool:
    text = layout.index.data[slice(*layout.index.line_span(line, line))]
    return bool(text) and (not text.strip() or text.lstrip().startswith(b"#"))


def _end(layout: _Layout, statement: ast.stmt) -> int:
    """Where a statement's last line ends; comments that are indented like its last block belong to it."""
    index, line = layout.index, statement.end_lineno or 0
    inner = _blocks(statement)
    if inner and inner[-1][0].col_offset == statement.col_offset:  # elif
        return _end(layout, inner[-1][0])
    if inner and inner[-1][0].lineno > statement.lineno:
        indent = _line(layout, inner[-1][0])[1].encode("utf-8")
        further = line + 1
        while further <= index.line_of(len(index.data)) and _is_empty_or_comment(layout, further):
            if index.data[slice(*index.line_span(further, further))].startswith(indent):
                line = further
            further += 1
    return index.line_span(line, line)[1]


def _behind_previous(layout: _Layout, statement: ast.stmt) -> int:
    """Where the comments above a statement begin."""
    previous = [*layout.index.before(statement)][-1:]
    if previous:
        return _end(layout, previous[0])
    owner = layout.index.parent(statement)
    if owner is None or isinstance(owner, ast.Module):
        return _line(layout, statement)[0]
    return _body_start(layout, owner)


# -- at the top -----------------------------------------------------------


def _at_top(layout: _Layout, changes: Changes, edits: Sequence[Edit]) -> list[Edit]:
    """The new imports behind those at the top, and behind these the set-up."""
    index = layout.index
    body = index.tree.body
    plain = (alias for one in body if isinstance(one, ast.Import) for alias in one.names)
    there = {f"import {alias.name}" for alias in plain if alias.asname is None}
    there.update(index.text.splitlines())
    there.update(line for lines in changes.after.values() for line in lines)
    imports = [line for line in dict.fromkeys(changes.imports) if line not in there]
    header = changes.header
    if not imports and not header:
        return []
    ends = [_end(layout, one) for one in body]
    place = _behind_imports(body)
    if header:
        place = min(place, _first_use(layout, header, ends, edits))
    at = ends[place - 1] if place else _line(layout, body[0])[0]
    if not header:
        return [_inserted(layout, at, imports, "")]
    last = place == len(body) and not any(edit.start == at for edit in edits)
    lines = [*imports, "", "", *header.strip("\n").split("\n"), *([] if last else ["", ""])]
    found = [_inserted(layout, at, lines, "")]
    behind = at
    for edit in edits:
        behind = edit.end if edit.start == behind and not edit.text else behind
    if not any(edit.start == edit.end == behind for edit in edits):
        end = re.compile(rb"(?:[ \t\f]*(?:\r\n|\r|\n))*").match(index.data, behind)
        if end and end.end() > behind and place:
            found.append(Edit(behind, end.end(), ""))
    return found


def _first_use(layout: _Layout, header: str, ends: Sequence[int], edits: Sequence[Edit]) -> int:
    """The first statement that does something with what the header defines: the header goes before it."""
    names = re.findall(r"^(?:def|class) (\w+)", header, re.M)
    word = re.compile(rf"\b(?:{'|'.join(names)})\b")
    start = 0
    for number, (statement, end) in enumerate(zip(layout.index.tree.body, ends)):
        if not isinstance(statement, _DEFINITIONS):
            texts = [edit.text for edit in edits if start <= edit.start < end]
            if word.search("\n".join([*texts, layout.index.segment(statement)])):
                return number
        start = end
    return len(ends)


def _behind_imports(body: Sequence[ast.stmt]) -> int:
    """Behind the last import before the first statement that defines or does something."""
    place = 0
    for number, statement in enumerate(body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            place = number + 1
        elif number == 0 and isinstance(statement, ast.Expr):
            place = 1  # the docstring
        elif isinstance(statement, (*_DEFINITIONS, ast.For, ast.AsyncFor, ast.While)):
            break
    return place
