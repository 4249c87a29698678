"""A library that asks NVIDIA's driver (pynvml): its questions are torch.npu's, where a file asks no others.

Either every use of a file has an NPU's answer, and the import goes with them, or nothing is changed: a
handle of one library is nothing to the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.device_listing import all_known, knows_visible_devices, named_in
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import npu_module
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.matchers.removal import without_statement
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, called_name, imported, only_target


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class _Use:
    """A use of the library and what it becomes; None where that is not known.

    ``reads`` are the places at which something of it is read later, and what they become.
    """

    node: ast.expr
    name: str
    edits: Optional[list[Edit]]
    reads: Sequence[tuple[ast.expr, list[Edit]]] = ()


def find(context: FileContext, rule: DriverRule) -> Iterator[Match]:
    """The uses and the imports; where one use has no answer, the imports and what raises are reported."""
    index, options = context.index, rule.options
    imports = [each for each in index.imports if any(rule.fits(name) for name in imported(each))]
    uses = [_answered(context, rule, ref, name) for ref, name in _uses(index, rule, imports)]
    known = [use for use in uses if use.edits is not None]
    chooses = knows_visible_devices(index.text) and any(
        named_in(options.calls.get(use.name, "")) - {"device_count"} for use in uses
    )
    # They can go that bring nothing else.
    can_go = all(len(imported(each)) == len(each.names) for each in imports) and all(
        rule.fits(name) for each in imports for name in imported(each)
    )
    if not uses or len(known) < len(uses) or chooses or not can_go:
        yield from every_import(context, [rule])
        for use in uses:
            if use.name in options.started:
                message, advice = options.raises, options.chosen if chooses else ""
                yield found(
                    context, rule, use.node, api=use.name, severity="blocker", message=message, advice=advice
                )
        return
    gone = [index.statement_of(use.node) for use in known if not options.calls.get(use.name, "other")]
    for use in known:
        statement = index.statement_of(use.node)
        edits = use.edits or []
        if statement in gone and isinstance(statement, ast.stmt):
            edits = [without_statement(index, statement, gone)]
        yield found(context, rule, use.node, api=use.name, edits=edits)
        for node, changes in use.reads:
            yield found(context, rule, node, api=use.name, edits=changes)
    for each in imports:
        edit = without_statement(index, each, [*gone, *imports])
        yield found(context, rule, each, api=", ".join(imported(each)), edits=[edit], needs_npu=False)


def _uses(index: ModuleIndex, rule: DriverRule, imports: list[Import]) -> Iterator[tuple[ast.expr, str]]:
    """What is named of the library, by its last name; the library itself by an empty one."""
    every = any(alias.name == "*" for each in imports for alias in each.names)
    for ref in index.refs:
        inner: ast.expr = ref
        while isinstance(inner, ast.Attribute) and not _names_member(index, rule, inner):
            inner = inner.value
        if isinstance(inner, ast.Attribute):
            yield inner, inner.attr
        elif isinstance(inner, ast.Name):
            name = index.qualified_name(inner)
            if name and rule.fits(name) and not isinstance(inner.ctx, ast.Store):
                is_function = any(
                    (alias.asname or alias.name) == inner.id for each in imports for alias in each.names
                )
                last = name.rpartition(".")[2]
                yield inner, last if is_function and last in _known(rule) else ""
            elif every and not name and inner.id in _known(rule) and not index.bindings(inner):
                yield inner, inner.id


def _names_member(index: ModuleIndex, rule: DriverRule, node: ast.Attribute) -> bool:
    """Whether an attribute is one of the library's module, and no module itself."""
    name = index.qualified_name(node.value)
    return bool(name) and rule.fits(name) and not index.qualified_name(node).endswith(".py3nvml")


def _known(rule: DriverRule) -> set[str]:
    return {*rule.options.calls, *rule.options.names}


def _answered(context: FileContext, rule: DriverRule, ref: ast.expr, name: str) -> _Use:
    index, options = context.index, rule.options
    if name in options.names:
        return _Use(ref, name, [instead_of(index, ref, options.names[name])])
    call = index.call_of(ref)
    if name not in options.calls or call is None or call.keywords:
        return _Use(ref, name, None)
    source = options.calls[name]
    if not source:
        return _Use(ref, name, [] if isinstance(index.parent(call), ast.Expr) else None)
    npu = npu_module(index, call)
    if npu is None or len(call.args) != source.count("{}") or not all_known(context, named_in(source)):
        return _Use(ref, name, None)
    before, _, behind = source.replace("torch.npu.", f"{npu}.").partition("{}")
    if call.args:
        first = Edit(index.start(call), index.start(call.args[0]), before)
        edits = [first, Edit(index.end(call.args[0]), index.end(call), behind)]
    else:
        edits = [instead_of(index, call, before)]
    around = index.parent(call)
    text = options.members.get(f"{name}.{around.attr}", "") if isinstance(around, ast.Attribute) else ""
    if around is not None and text.count("{}") > 1:  # what it gives is needed twice
        if not all(isinstance(each, (ast.Name, ast.Constant)) for each in call.args):
            return _Use(ref, name, None)
        value = before + "".join(map(index.segment, call.args)) + behind
        return _Use(ref, name, [instead_of(index, around, text.replace("{}", value))])
    if name in options.handles and not all(
        called_name(index.parent(read)) in options.calls for read in index.reads_of(call)
    ):  # a handle is given to something else than functions of the library
        return _Use(ref, name, None)
    read = _read(index, options, call, name)
    if read is None:
        return _Use(ref, name, None)
    at_once = [edit for node, changes in read if node is call for edit in changes]
    later = [(node, changes) for node, changes in read if node is not call]
    return _Use(ref, name, [*edits, *at_once], later)


def _read(
    index: ModuleIndex, options: DriverOptions, call: ast.Call, name: str
) -> Optional[list[tuple[ast.expr, list[Edit]]]]:
    """What is read of a result, at once or by the name that it is given, and the edits for it."""
    if not any(each.startswith(f"{name}.") for each in options.members):
        return []
    values, held = index.reads_of(call), only_target(index.parent(call))
    if isinstance(held, ast.Name):
        bound = [each.node for each in index.bindings(held) if each.node is not index.parent(call)]
        if values and not all(_is_for_bytes(index, each) for each in bound):
            return None
        values = [use for use in values if not _is_for_bytes(index, use)]
    read: list[tuple[ast.expr, list[Edit]]] = []
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
            behind = Edit(index.end(value), end, index.segment(value).join(rest))
            read.append((value, [*edits, behind]))
    return read


def _is_for_bytes(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether code is for bytes only, which older releases give: ``if isinstance(name, bytes):``."""
    tests = (up.test for up in index.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(called_name(test) == "isinstance" and "bytes" in index.segment(test) for test in tests)
