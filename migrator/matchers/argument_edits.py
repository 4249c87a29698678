"""The edits that add arguments, and those that take out arguments, entries of a dictionary, a statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Union

from migrator.findings.finding import Edit
from migrator.light import Frozen
from migrator.matchers.options import Scalar
from migrator.names.index import ModuleIndex
from migrator.names.tree import arguments_of, called_name, hands_on, is_cpu, string_value

Argument = Union[ast.expr, ast.keyword]
Span = tuple[int, int]
# What stands behind a call's last argument: comments, parentheses around the argument, a trailing comma.
_MARKS = re.compile(rb"#[^\r\n]*|[),]")


class Arguments(Frozen):
    """How the arguments of a call become those of what takes the place of the callable.

    ``parameters`` are the same on both sides, by place too, ``keeps`` by keyword; without any all are. Of
    other keywords ``renames`` have another name (False goes), ``drops`` go, with their places (-1: by keyword
    only), and ``usual`` go where they have this value. One of ``chooses`` goes as well, and False chooses
    another name. ``adds`` gives what is the default of the one and not of the other.
    """

    parameters: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    usual: dict[str, Scalar] = field(default_factory=dict)
    chooses: dict[str, str] = field(default_factory=dict)
    adds: dict[str, str] = field(default_factory=dict)

    def edits(self, index: ModuleIndex, call: ast.Call) -> list[Edit] | None:
        """The edits of a call's arguments; None where one does not fit, or cannot be taken out."""
        own, hands_on_some = self.parameters, any(isinstance(each, ast.Starred) for each in call.args)
        if hands_on_some or (own and (hands_on(call) or len(call.args) > len(own))):
            return None
        written = {keyword.arg for keyword in call.keywords}
        written |= {name for name, at in self.drops.items() if 0 <= at < len(call.args)}
        changing = {*self.renames, *self.drops, *self.usual, *self.chooses} - written
        handed = (keyword.value for keyword in call.keywords if keyword.arg is None)
        if any(_may_hold(index, value, changing) for value in handed):
            return None
        gone: list[Argument] = [call.args[at] for at in self.drops.values() if 0 <= at < len(call.args)]
        edits: list[Edit] = []
        for keyword in call.keywords:
            name, value = keyword.arg or "", getattr(keyword.value, "value", keyword)
            chooses = name in self.chooses and value in (True, False)
            if name in self.renames and value is not False:
                start = index.start(keyword)
                edits.append(Edit(start, start + len(name), self.renames[name]))
            elif chooses or name in {**self.renames, **self.drops} or (name, value) in self.usual.items():
                gone.append(keyword)
            elif own and name not in (*own, *self.keeps):
                return None
        for_cpu = (is_cpu(each.value if isinstance(each, ast.keyword) else each) for each in gone)
        removed = None if any(for_cpu) else without_arguments(index, call, gone) if gone else []
        if removed is None:
            return None
        given = {*self.parameters[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
        for name, source in self.adds.items():
            edits += added_argument(index, call, name, source) if name not in given else ()
        return [*removed, *edits]

    def chosen(self, call: ast.Call) -> str:
        """The other name that an argument of a call chooses; empty where none does."""
        off = (each.arg or "" for each in call.keywords if not getattr(each.value, "value", True))
        return next((self.chooses[name] for name in off if name in self.chooses), "")


def _may_hold(index: ModuleIndex, arguments: ast.expr, names: Collection[str]) -> bool:
    """Whether what stands behind ``**`` may hold an argument of one of these names."""
    every = [arguments]
    if isinstance(arguments, ast.Name):
        every = index.assigned(arguments)
        if not every or len(every) < len(index.bindings(arguments)):
            return bool(names)
    for each in every if names else ():
        keys: set[str | None] = {None}
        if isinstance(each, ast.Dict):
            keys = {string_value(key) for key in each.keys}
        elif isinstance(each, ast.Call) and called_name(each) == "dict" and not each.args:
            keys = {keyword.arg for keyword in each.keywords}
        if None in keys or not keys.isdisjoint(names):
            return True
    return False


def without_arguments(index: ModuleIndex, call: ast.Call, gone: Collection[Argument]) -> list[Edit] | None:
    """The edits that take arguments out of a call; None where a comment or a parenthesis stands between."""
    given: list[Argument] = sorted([*call.args, *call.keywords], key=index.start)
    kept = [each for each in given if each not in gone]
    if not kept:
        inside = Edit(index.end(call.func), index.end(call), "()")
        return None if b"#" in index.data[inside.start : inside.end] else [inside]
    return _taken_out(index, [index.span(each) for each in given], [each in gone for each in given])


def without_entries(index: ModuleIndex, entries: ast.Dict, gone: Collection[ast.expr]) -> list[Edit] | None:
    """The edits that take the entries with some keys out of a dictionary; None as for arguments."""
    start, end = index.span(entries)
    keys = [key for key in entries.keys if key is not None]
    if len(keys) < len(entries.keys):  # the value of **more has no place for its stars
        return None
    if all(key in gone for key in keys):
        return None if b"#" in index.data[start:end] else [Edit(start + 1, end - 1, "")]
    spans = [(index.start(key), index.end(value)) for key, value in zip(keys, entries.values)]
    return _taken_out(index, spans, [key in gone for key in keys])


def _taken_out(index: ModuleIndex, spans: Sequence[Span], gone: Sequence[bool]) -> list[Edit] | None:
    """The edits that take some parts out of a list of parts with commas, which others stay in."""
    edits = []
    for place, (start, end) in enumerate(spans):
        if gone[place]:
            # With the comma behind the one before it; of the first ones, with their own.
            first = all(gone[:place])
            around = (end, spans[place + 1][0]) if first else (spans[place - 1][1], start)
            if index.data[slice(*around)].strip() != b",":
                return None
            edits.append(Edit(start, around[1], "") if first else Edit(around[0], end, ""))
    return edits


def without_statement(index: ModuleIndex, statement: ast.stmt) -> Edit:
    """The edit that takes a statement out with its line; ``pass`` stands for it where that cannot be."""
    start, end = index.span(statement)
    before, behind = index.lines.beside((start, end))
    if len(index.block(statement)) > 1 and not (before + behind).strip():
        return Edit(start - len(before), end + len(behind), "")
    return Edit(start, end, "pass")


def added_argument(index: ModuleIndex, call: ast.Call, keyword: str, value: str) -> list[Edit]:
    """The edits that add an argument at a call's end.

    A trailing comma, comments and line breaks inside the call stay as they are.
    """
    text = f"{keyword}={value}" if keyword else value
    closing = index.end(call) - 1
    arguments = arguments_of(call)
    if not arguments:
        return [Edit(closing, closing, text)]
    last = max(arguments, key=index.end)
    end = index.end(last)
    if end > closing:  # a bare generator shares its parentheses with the call
        start = index.start(last)
        return [Edit(start, start, "("), Edit(end, end, f", {text})")]
    trailing_comma = False
    # Parentheses around the last argument belong to it.
    for mark in _MARKS.finditer(index.data, end, closing):
        if not mark[0].startswith(b"#"):
            end, trailing_comma = mark.end(), mark[0] == b","
    return [Edit(end, end, f" {text}," if trailing_comma else f", {text}")]
