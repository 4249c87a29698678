"""Libraries of NVIDIA: shared ones of CUDA, the driver's (pynvml), and ONNX Runtime's provider."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import takewhile
from typing import Optional, Union

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.argument_edits import without_entries, without_statement
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.device_listing import all_known, knows_visible_devices, named_in
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import npu_module
from migrator.matchers.options import EXPRESSION, LONGEST, SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import is_for_cuda_builds
from migrator.names.device_strings import is_docstring
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import Import, called_name, imported, only_target, string_value, targets_of

_LOADERS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.PyDLL")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert)
_LEAST = 4  # spaces
_TEXTS = (ast.Constant, ast.JoinedStr)


class LibraryOptions(Options):
    """``goes_on`` is a regular expression for what stands behind a library's name.

    ``optional`` are functions that a program does without; ``calls`` gives the source for those that
    torch.npu has, ``results`` for those that give what they know through pointers.
    """

    goes_on: str = field(default="", metadata=EXPRESSION)
    optional: tuple[str, ...] = ()
    calls: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


_Change = tuple[ast.expr, list[Edit]]  # what is written anew, and how
_Place = tuple[Union[ast.AST, tuple[int, int]], list[Edit]]  # the same of a node, or of a place in the text


def find_shared(context: FileContext, rule: Rule[LibraryOptions]) -> Iterator[Match]:
    """The texts that name a library; to load it stops the program."""
    index = context.index
    names = sorted(rule.match, key=len, reverse=True)
    goes_on = re.compile(rule.options.goes_on)
    for node in index.strings:
        text = string_value(node) or ""
        named = (name for name in names if name in text)
        api = next((each for each in named if goes_on.match(text.partition(each)[2][:LONGEST])), "")
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
        says = partial(found, api=api, message=message, severity="blocker")
        for place, edits in changes or [(call, [])]:
            span = place if isinstance(place, tuple) else index.span(place)
            needs_npu = any("npu." in edit.text for edit in edits) if edits else None
            yield says(context, rule, call, edits=edits, span=span, needs_npu=needs_npu)


def _instead(index: ModuleIndex, options: LibraryOptions, held: ast.Assign) -> list[_Place]:
    """What changes to do without a library that a statement loads; nothing where it is needed."""
    target = only_target(held)
    uses = index.uses_of(target) if isinstance(target, ast.Name) else ()
    every = [index.call_of(index.parent(use)) for use in uses]
    calls = [call for call in every if call is not None]
    if not calls or len(calls) < len(every) or any(len(index.bindings(use)) != 1 for use in uses):
        return []
    if all(called_name(call) in options.optional for call in calls):
        return _on_cuda_only(index, held, calls)
    asked = [(call, _by_npu(index, options, call, called_name(call))) for call in calls]
    return [(held, [without_statement(index, held)]), *asked] if all(edits for _call, edits in asked) else []


def _by_npu(index: ModuleIndex, options: LibraryOptions, call: ast.Call, name: str) -> list[Edit]:
    """The edit that asks torch.npu instead; none where that is not seen."""
    npu = npu_module(index, call)
    if npu is None or not isinstance(index.parent(call), ast.Expr):
        return []
    if name in options.calls and not call.args:
        return [instead_of(index, call, options.calls[name].replace("torch.npu", npu))]
    given = (each for each in call.args if isinstance(each, ast.Call) and len(each.args) == 1)
    pointers = (each.args[0] for each in given if called_name(each) in ("byref", "pointer"))
    by_pointer = [f"{index.segment(each)}.value" for each in pointers]
    if name not in options.results or len(by_pointer) != len(call.args):
        return []
    result = options.results[name].replace("torch.npu", npu)
    return [instead_of(index, call, f"{', '.join(by_pointer)} = {result}")]


def _on_cuda_only(index: ModuleIndex, held: ast.Assign, calls: Sequence[ast.Call]) -> list[_Place]:
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
    texts = (node for each in inside for node in ast.walk(each) if isinstance(node, _TEXTS))
    # What stands before the lines of a text is a part of it.
    is_long = any(node.lineno != node.end_lineno for node in texts)
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


def find_driver(context: FileContext, rule: DriverRule) -> Iterator[Match]:
    """The uses and the imports; where one use has no answer, the imports and what raises are reported."""
    index, options = context.index, rule.options
    imports = [each for each in index.imports if any(context.fits(rule, name) for name in imported(each))]
    uses = [(ref, name, _changes(context, rule, ref, name)) for ref, name in _named(context, rule, imports)]
    chooses = knows_visible_devices(index.text) and any(
        named_in(options.calls.get(name, "")) - {"device_count"} for _ref, name, _known in uses
    )
    # They can go that bring nothing else.
    brought = [name for each in imports for name in imported(each)]
    is_whole = len(brought) == sum(len(each.names) for each in imports)
    can_go = is_whole and all(context.fits(rule, name) for name in brought)
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


def _named(context: FileContext, rule: DriverRule, imports: list[Import]) -> Iterator[tuple[ast.expr, str]]:
    """What is named of the library, by its last name; the library itself by an empty one."""
    index = context.index
    known = {*rule.options.calls, *rule.options.names}
    aliases = [alias for each in imports for alias in each.names]
    bound = {alias.asname or alias.name for alias in aliases}
    for ref in index.refs:
        inner: ast.expr = ref
        while isinstance(inner, ast.Attribute):
            module = index.qualified_name(inner.value)
            # A member of the library's module, and no module itself.
            if module and context.fits(rule, module) and not index.qualified_name(inner).endswith(".py3nvml"):
                break
            inner = inner.value
        if isinstance(inner, ast.Attribute):
            yield inner, inner.attr
        elif isinstance(inner, ast.Name):
            name = index.qualified_name(inner)
            last = name.rpartition(".")[2]
            if name and context.fits(rule, name) and not isinstance(inner.ctx, ast.Store):
                yield inner, last if inner.id in bound and last in known else ""
            elif "*" in bound and not name and inner.id in known and not index.bindings(inner):
                yield inner, inner.id


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


class ProviderOptions(Options):
    """The options that the NPU's provider calls otherwise (``renamed``), and those it lacks (``gone``)."""

    renamed: dict[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


def find_provider_options(context: FileContext, rule: Rule[ProviderOptions]) -> Iterator[Match]:
    """Dictionaries of options behind a provider's name: ``("CUDAExecutionProvider", {"device_id": 0})``.

    One that a variable holds is changed where every use of the variable is such a place.
    """
    index, options = context.index, rule.options
    known = {*options.renamed, *options.gone}
    given = (index.parent(each) for each in index.strings if string_value(each) in known)
    for entries in dict.fromkeys(each for each in given if isinstance(each, ast.Dict)):
        keys = {key: text for key in entries.keys if key and (text := string_value(key)) in known and text}
        pairs = [(each, index.parent(each)) for each in index.reads_of(entries)]
        of_provider = [
            isinstance(pair, ast.Tuple)
            and len(pair.elts) == 2
            and pair.elts[1] is each
            and string_value(pair.elts[0]) in rule.match
            for each, pair in pairs
        ]
        if not keys or not any(of_provider):
            continue
        gone = [key for key, text in keys.items() if text in options.gone]
        edits = without_entries(index, entries, gone) if gone else []
        if edits is not None and all(of_provider):
            for key, text in keys.items():
                if text in options.renamed and isinstance(key, ast.Constant):
                    edits += replace_text(index, key, text, options.renamed[text])
        else:  # one cannot be taken out
            edits = []
        yield found(context, rule, next(iter(keys)), api=", ".join(keys.values()), edits=sorted(edits))
