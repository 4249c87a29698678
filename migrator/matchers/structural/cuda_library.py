"""A shared library of CUDA that is loaded with ctypes, or named.

Where only limits of the device are set with it, which make a program faster, that is done on CUDA alone. What
torch.npu does too, it does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import takewhile

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import npu_module
from migrator.matchers.options import EXPRESSION, LONGEST
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import is_for_cuda_builds
from migrator.names.device_strings import is_docstring
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, only_target, string_value, targets_of

_LOADERS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.PyDLL")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert)
_LEAST = 4  # spaces


class LibraryOptions(Options):
    """``goes_on`` is a regular expression for what stands behind a library's name.

    ``optional`` are functions that a program does without; ``calls`` gives the source for those that
    torch.npu has, ``results`` for those that give what they know through pointers.
    """

    goes_on: str = field(default="", metadata=EXPRESSION)
    optional: tuple[str, ...] = ()
    calls: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


LibraryRule = Rule[LibraryOptions]
# A place in the text, and what is written there.
_Change = tuple[tuple[int, int], list[Edit]]


def find(context: FileContext, rule: LibraryRule) -> Iterator[Match]:
    """The texts that name a library; to load it stops the program."""
    index = context.index
    names = sorted(rule.match, key=len, reverse=True)
    for node in index.strings:
        parts = ((name, (string_value(node) or "").partition(name)) for name in names)
        goes_on = (
            name for name, (_before, there, behind) in parts
            if there and re.match(rule.options.goes_on, behind[:LONGEST])
        )  # fmt: skip
        api = next(goes_on, "")
        if not api or is_docstring(index, node):
            continue
        call = index.parent(node)
        if not isinstance(call, ast.Call) or index.qualified_name(call.func) not in _LOADERS:
            yield found(context, rule, node, api=api)
            continue
        if is_for_cuda_builds(index, call):
            yield found(context, rule, call, api=api, severity="info")
            continue
        message = _("{api} is a CUDA library: loading it on an NPU machine raises OSError", api=api)
        held = index.parent(call)
        changes = _instead(index, rule.options, held) if isinstance(held, ast.Assign) else []
        for span, edits in changes or [(index.span(call), [])]:
            needs_npu = any("npu." in edit.text for edit in edits) if edits else None
            yield found(
                context, rule, call, api=api, edits=edits, message=message, severity="blocker", span=span,
                needs_npu=needs_npu,
            )  # fmt: skip


def _instead(index: ModuleIndex, options: LibraryOptions, held: ast.Assign) -> list[_Change]:
    """What changes to do without a library that a statement loads; nothing where it is needed."""
    target = only_target(held)
    uses = index.uses_of(target) if isinstance(target, ast.Name) else ()
    every = [index.call_of(index.parent(use)) for use in uses]
    calls = [call for call in every if call is not None]
    if not calls or len(calls) < len(every) or any(len(index.bindings(use)) != 1 for use in uses):
        return []
    if all(called_name(call) in options.optional for call in calls):
        return _on_cuda_only(index, held, calls)
    asked = [_by_npu(index, options, call, called_name(call)) for call in calls]
    if not all(asked):
        return []
    spans = [index.span(held), *map(index.span, calls)]
    return list(zip(spans, [[without_statement(index, held)], *asked]))


def _by_npu(index: ModuleIndex, options: LibraryOptions, call: ast.Call, name: str) -> list[Edit]:
    """The edit that asks torch.npu instead; none where that is not seen."""
    npu = npu_module(index, call)
    if npu is None or not isinstance(index.parent(call), ast.Expr):
        return []
    if name in options.calls and not call.args:
        return [instead_of(index, call, options.calls[name].replace("torch.npu", npu))]
    by_pointer = [
        f"{index.segment(each.args[0])}.value" for each in call.args
        if isinstance(each, ast.Call) and called_name(each) in ("byref", "pointer") and len(each.args) == 1
    ]  # fmt: skip
    if name not in options.results or len(by_pointer) != len(call.args):
        return []
    result = options.results[name].replace("torch.npu", npu)
    return [instead_of(index, call, f"{', '.join(by_pointer)} = {result}")]


def _on_cuda_only(index: ModuleIndex, held: ast.Assign, calls: Sequence[ast.Call]) -> list[_Change]:
    """The change that puts a library, its calls and what is made for them behind a question for CUDA."""
    npu, block = npu_module(index, held.value), index.block(held)
    statements = [index.statement_of(call) for call in calls]
    if npu is None or npu == "torch_npu.npu" or any(each not in block for each in statements):
        return []
    first = block.index(held)
    places = [block.index(each) for each in statements if isinstance(each, ast.stmt)]
    made = _names(held.targets[0]).union(*(_names(each) for call in calls for each in call.args))
    last = max(places)
    behind = takewhile(lambda each: isinstance(each, ast.Assert) and _names(each) & made, block[last + 1 :])
    inside = block[first : last + 1 + len([*behind])]
    if min(places) < first or not all(isinstance(each, _SIMPLE) for each in inside):
        return []
    start, end = index.start(inside[0]), index.end(inside[-1])
    lines = range(index.line_of(start), index.line_of(end - 1) + 1)
    begins = [index.line_span(line, line)[0] for line in lines]
    indent = index.data[begins[0] : start]
    is_long = any(_is_long(node) for each in inside for node in ast.walk(each))
    if indent.strip() or is_long or _is_used_behind(index, inside):
        return []
    question = f"{indent.decode()}if {npu[: -len('.npu')]}.version.cuda:{newline_of(index.text)}"
    step = "\t" if b"\t" in indent else " " * _LEAST
    filled = [at for at in begins if index.data[at : at + 1] not in (b"\n", b"\r")]
    edits = [Edit(at, at, question + step if at == begins[0] else step) for at in filled]
    return [((start, end), edits)]


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_used_behind(index: ModuleIndex, inside: Sequence[ast.stmt]) -> bool:
    """Whether something that the statements bind is read elsewhere."""
    for statement in inside:
        targets = targets_of(statement)
        names = [target for target in targets if isinstance(target, ast.Name)]
        if isinstance(statement, ast.AnnAssign) or len(names) < len(targets):
            return True
        if any(index.statement_of(use) not in inside for name in names for use in index.uses_of(name)):
            return True
    return False


def _is_long(node: ast.AST) -> bool:
    """Whether a text goes over several lines: what stands before them is a part of it."""
    is_text = isinstance(node, ast.JoinedStr) or string_value(node) is not None
    return is_text and getattr(node, "lineno", 0) != getattr(node, "end_lineno", 0)
