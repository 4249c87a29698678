"""A library that asks NVIDIA's driver (pynvml): its questions are torch.npu's, where a file asks no others.

Either every use of a file has an NPU's answer, and the import goes with them, or nothing is changed: a
handle of one library is nothing to the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.device_listing import all_known, knows_visible_devices, named_in
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import npu_module
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, called_name, imported, only_target


class DriverOptions(Options):
    """What stands for the library's functions on an NPU.

    ``calls`` gives the source for a function, ``{}`` for its argument; an empty one is left out. ``members``
    gives that for a member of what a function returns, ``{}`` for the value. ``names`` are others.
    ``started`` are the functions that raise without the driver, and ``raises`` what is said of them;
    ``chosen`` is said where the answer chooses the visible devices. ``handles`` are those that give what only
    the library itself understands.
    """

    calls: dict[str, str] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    started: tuple[str, ...] = ()
    handles: tuple[str, ...] = ()
    raises: str = field(default="", metadata=SAID)
    chosen: str = field(default="", metadata=SAID)

    def words_of_lines(self) -> tuple[str, ...]:
        """The functions too: ``from pynvml import *``."""
        return (*self.line_words, *self.calls, *self.names)


DriverRule = Rule[DriverOptions]


_Change = tuple[ast.expr, list[Edit]]  # what is written anew, and how


def find(context: FileContext, rule: DriverRule) -> Iterator[Match]:
    """The uses and the imports; where one use has no answer, the imports and what raises are reported."""
    index, options = context.index, rule.options
    imports = [each for each in index.imports if any(rule.fits(name) for name in imported(each))]
    uses = [(ref, name, _changes(context, rule, ref, name)) for ref, name in _uses(index, rule, imports)]
    chooses = knows_visible_devices(index.text) and any(
        named_in(options.calls.get(name, "")) - {"device_count"} for _ref, name, _known in uses
    )
    # They can go that bring nothing else.
    can_go = all(
        len(imported(each)) == len(each.names) and all(map(rule.fits, imported(each))) for each in imports
    )
    if not uses or any(known is None for *_use, known in uses) or chooses or not can_go:
        yield from every_import(context, [rule])
        message, advice = options.raises, options.chosen if chooses else ""
        for ref, name, _known in uses:
            if name in options.started:
                yield found(context, rule, ref, api=name, severity="blocker", message=message, advice=advice)
        return
    gone = [index.statement_of(ref) for ref, name, _known in uses if not options.calls.get(name, "other")]
    for ref, name, known in uses:
        statement = index.statement_of(ref)
        if statement in gone and isinstance(statement, ast.stmt):
            known = [(ref, [without_statement(index, statement, gone)])]
        for node, edits in known or ():
            yield found(context, rule, node, api=name, edits=edits)
    for each in imports:
        edit = without_statement(index, each, [*gone, *imports])
        yield found(context, rule, each, api=", ".join(imported(each)), edits=[edit], needs_npu=False)


def _uses(index: ModuleIndex, rule: DriverRule, imports: list[Import]) -> Iterator[tuple[ast.expr, str]]:
    """What is named of the library, by its last name; the library itself by an empty one."""
    known = {*rule.options.calls, *rule.options.names}
    aliases = [alias for each in imports for alias in each.names]
    bound = {alias.asname or alias.name for alias in aliases}
    for ref in index.refs:
        inner: ast.expr = ref
        while isinstance(inner, ast.Attribute) and not _names_member(index, rule, inner):
            inner = inner.value
        if isinstance(inner, ast.Attribute):
            yield inner, inner.attr
        elif isinstance(inner, ast.Name):
            name = index.qualified_name(inner)
            last = name.rpartition(".")[2]
            if name and rule.fits(name) and not isinstance(inner.ctx, ast.Store):
                yield inner, last if inner.id in bound and last in known else ""
            elif "*" in bound and not name and inner.id in known and not index.bindings(inner):
                yield inner, inner.id


def _names_member(index: ModuleIndex, rule: DriverRule, node: ast.Attribute) -> bool:
    """Whether an attribute is one of the library's module, and no module itself."""
    name = index.qualified_name(node.value)
    return bool(name) and rule.fits(name) and not index.qualified_name(node).endswith(".py3nvml")


def _changes(context: FileContext, rule: DriverRule, ref: ast.expr, name: str) -> Optional[list[_Change]]:
    """What a use becomes, and places where something of it is read; None where that is not known."""
    index, options = context.index, rule.options
    if name in options.names:
        return [(ref, [instead_of(index, ref, options.names[name])])]
    call = index.call_of(ref)
    if name not in options.calls or call is None or call.keywords:
        return None
    source, around, npu = options.calls[name], index.parent(call), npu_module(index, call)
    if not source:
        return [(ref, [])] if isinstance(around, ast.Expr) else None
    if npu is None or len(call.args) != source.count("{}") or not all_known(context, named_in(source)):
        return None
    before, _dot, behind = source.replace("torch.npu.", f"{npu}.").partition("{}")
    text = options.members.get(f"{name}.{around.attr}", "") if isinstance(around, ast.Attribute) else ""
    if around is not None and text.count("{}") > 1:  # what it gives is needed twice
        if not all(isinstance(each, (ast.Name, ast.Constant)) for each in call.args):
            return None
        value = before + "".join(map(index.segment, call.args)) + behind
        return [(ref, [instead_of(index, around, text.replace("{}", value))])]
    if name in options.handles and not all(
        called_name(index.parent(read)) in options.calls for read in index.reads_of(call)
    ):  # a handle is given to something else than functions of the library
        return None
    edits = [instead_of(index, call, before)]
    if call.args:
        first = Edit(index.start(call), index.start(call.args[0]), before)
        edits = [first, Edit(index.end(call.args[0]), index.end(call), behind)]
    read = _read(index, options, call, name)
    if read is None:
        return None
    at_once = [edit for node, changes in read if node is call for edit in changes]
    return [(ref, [*edits, *at_once]), *(each for each in read if each[0] is not call)]


def _read(index: ModuleIndex, options: DriverOptions, call: ast.Call, name: str) -> Optional[list[_Change]]:
    """What is read of a result, at once or by the name that it is given, and the edits for it."""
    if not any(each.startswith(f"{name}.") for each in options.members):
        return []
    values, held = index.reads_of(call), only_target(index.parent(call))
    if isinstance(held, ast.Name):
        bound = [each.node for each in index.bindings(held) if each.node is not index.parent(call)]
        if values and not all(_is_for_bytes(index, each) for each in bound):
            return None
        values = [use for use in values if not _is_for_bytes(index, use)]
    read: list[_Change] = []
    for value in values:
        around = index.parent(value)
        method = index.call_of(around)
        member = f"{around.attr}{'()' if method else ''}" if isinstance(around, ast.Attribute) else ""
        text = options.members.get(f"{name}.{member}")
        if text is None:
            return None
        if isinstance(around, ast.Attribute):
            before, *rest = text.split("{}")
            start, end = index.start(value), index.end(method or around)
            edits = [Edit(start, start, before)] if before else []
            read.append((value, [*edits, Edit(index.end(value), end, index.segment(value).join(rest))]))
    return read


def _is_for_bytes(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether code is for bytes only, which older releases give: ``if isinstance(name, bytes):``."""
    tests = (up.test for up in index.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(called_name(test) == "isinstance" and "bytes" in index.segment(test) for test in tests)
