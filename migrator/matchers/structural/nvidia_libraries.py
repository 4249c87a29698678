"""Libraries of NVIDIA: shared ones of CUDA, and ONNX Runtime's provider."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import takewhile

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.argument_edits import without_entries
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.npu_import import torch_module
from migrator.matchers.options import EXPRESSION, LONGEST, NEVER
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import is_for_cuda_builds
from migrator.names.device_strings import is_docstring
from migrator.names.goes_to import behind_lists
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import called_name, only_target, string_value, targets_of

_LOADERS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.PyDLL")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert)
_LEAST = 4  # spaces
_TEXTS = (ast.Constant, ast.JoinedStr)


class LibraryOptions(Options):
    """``goes_on`` is a regular expression for what stands behind a library's name.

    ``not_below``: one for folders of the program's own; ``optional`` are functions that it does without.
    """

    goes_on: str = field(default="", metadata=EXPRESSION)
    not_below: str = field(default=NEVER, metadata=EXPRESSION)
    optional: tuple[str, ...] = ()


def find_shared(context: FileContext, rule: Rule[LibraryOptions]) -> Iterator[Match]:
    """The texts that name a library; to load it stops the program."""
    index = context.index
    names = sorted(rule.match, key=len, reverse=True)
    goes_on = re.compile(rule.options.goes_on)
    for node in index.strings:
        text = string_value(node) or ""
        named = (name for name in names if name in text)
        api = next((each for each in named if goes_on.match(text.partition(each)[2][:LONGEST])), "")
        if not api or is_docstring(index, node) or behind_lists(index, node).name in ("id", "ids"):
            continue  # it is shown: of pytest's parameters
        call = index.parent(node)
        if isinstance(call, ast.BinOp) and re.search(rule.options.not_below, index.segment(call.left)):
            continue
        if not isinstance(call, ast.Call) or index.qualified_name(call.func) not in _LOADERS:
            yield found(context, rule, node, api=api)
            continue
        if is_for_cuda_builds(index, call):
            yield found(context, rule, call, api=api, severity="info")
            continue
        message = _("{api} is a CUDA library: loading it on an NPU machine raises OSError", api=api)
        held = index.parent(call)
        span, edits = index.span(call), list[Edit]()
        if isinstance(held, ast.Assign) and (guarded := _on_cuda_only(index, rule.options, held)):
            span, edits = guarded
        says = partial(found, api=api, message=message, severity="blocker")
        yield says(context, rule, call, edits=edits, span=span, needs_npu=False if edits else None)


def _on_cuda_only(
    index: ModuleIndex, options: LibraryOptions, held: ast.Assign
) -> tuple[tuple[int, int], list[Edit]] | None:
    """The change that puts a library, its calls and what is made for them behind a question for CUDA.

    None where a program does not do without one of the calls.
    """
    target = only_target(held)
    uses = index.uses_of(target) if isinstance(target, ast.Name) else ()
    every = [index.call_of(index.parent(use)) for use in uses]
    calls = [call for call in every if call is not None and called_name(call) in options.optional]
    if not calls or len(calls) < len(every) or any(len(index.bindings(use)) != 1 for use in uses):
        return None
    torch, block = torch_module(index, held.value), index.block(held)
    statements = [index.statement_of(call) for call in calls]
    if torch is None or any(each not in block for each in statements):
        return None
    first = block.index(held)
    places = [block.index(each) for each in statements if isinstance(each, ast.stmt)]
    made = _names(held.targets[0]).union(*(_names(each) for call in calls for each in call.args))
    last = max(places)
    behind = takewhile(lambda each: isinstance(each, ast.Assert) and _names(each) & made, block[last + 1 :])
    inside = block[first : last + 1 + len([*behind])]
    if min(places) < first or not all(isinstance(each, _SIMPLE) for each in inside):
        return None
    start, end = index.start(inside[0]), index.end(inside[-1])
    lines = range(index.line_of(start), index.line_of(end - 1) + 1)
    begins = [index.line_span(line, line)[0] for line in lines]
    indent = index.data[begins[0] : start]
    texts = (node for each in inside for node in ast.walk(each) if isinstance(node, _TEXTS))
    # What stands before the lines of a text is a part of it.
    is_long = any(node.lineno != node.end_lineno for node in texts)
    if indent.strip() or is_long or _is_used_behind(index, inside):
        return None
    question = f"{indent.decode()}if {torch}.version.cuda:{newline_of(index.text)}"
    step = "\t" if b"\t" in indent else " " * _LEAST
    filled = [at for at in begins if index.data[at : at + 1] not in (b"\n", b"\r")]
    edits = [Edit(at, at, question + step if at == begins[0] else step) for at in filled]
    return (start, end), edits


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
