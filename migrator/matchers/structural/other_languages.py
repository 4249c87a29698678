"""Strings in another language: Python code that is run, ``yaml.safe_load("device: cuda")``.

Names of torch.cuda in code change where it runs among the names of its file; other code is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Optional

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.kinds.setting import name_fits, new_value
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import commands
from migrator.names.goes_to import goes_to
from migrator.names.index import ModuleIndex
from migrator.names.strings import inside, replace_text
from migrator.names.tree import called_name, string_value

_NAMES_CUDA = re.compile(r"\b(?:is_)?cuda\b|\bnccl\b")
_NAME = re.compile(r"\btorch\.cuda(?:\.\w+)*")
_CODE_KEYWORDS = ("condition", "stmt", "setup")


class CodeOptions(Options):
    """``runs``: the calls that run a text; ``here``: those that run it among the names of the file."""

    runs: tuple[str, ...] = ()
    here: tuple[str, ...] = ()


def find_code(context: FileContext, rule: Rule[CodeOptions]) -> Iterator[Match]:
    """The texts that are run as code and name CUDA."""
    index = context.index
    for node in index.strings:
        text = string_value(node)
        if (
            text is None
            or not isinstance(node, ast.Constant)
            or not _NAMES_CUDA.search(text)
            or not _is_code(text)
        ):
            continue
        call = _runs(index, rule, node)
        if call is not None:
            called = called_name(call)
            # It runs among the names of its file where it is given no others.
            is_here = called in rule.options.here and (len(call.args) == 1 or called not in ("eval", "exec"))
            edits = _code_for_npus(context, node, text) if is_here else []
            yield found(context, rule, node, api=_NAMES_CUDA.findall(text)[0], edits=edits)
    for command in commands(index):
        for option, word in zip(command.texts, command.words[1:]):
            if option == "-c" and not command.line and _NAMES_CUDA.search(word.text) and _is_code(word.text):
                yield found(context, rule, word.node, api=_NAMES_CUDA.findall(word.text)[0])


def _is_code(text: str) -> bool:
    try:
        ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not text.isidentifier()


def _runs(index: ModuleIndex, rule: Rule[CodeOptions], node: ast.expr) -> Optional[ast.Call]:
    """The call that runs a text, also by the only name that it is given."""
    for sink in goes_to(index, node):
        call = sink.holder
        is_code = sink.kind == "argument" and (sink.place >= 0 or sink.name in _CODE_KEYWORDS)
        if not is_code or not isinstance(call, ast.Call):
            continue
        if called_name(call) == "compile":  # exec(compile(text, name, "exec"))
            return _runs(index, rule, call)
        if called_name(call) in rule.options.runs:
            # model.eval(), and exec of other objects; of the marks of pytest only the last name is known.
            if called_name(call) not in ("eval", "exec") or isinstance(call.func, ast.Name):
                return call
    return None


def _code_for_npus(context: FileContext, node: ast.Constant, text: str) -> list[Edit]:
    """The edits that write the NPU names; none where one has no NPU equivalent, or other code names CUDA."""
    names = sorted(set(_NAME.findall(text)), key=len, reverse=True)
    edits: list[Edit] = []
    left = text
    for name in names:
        known = npu_names.look_up(name, context.version)
        if known is None or not known.npu or not known.npu.startswith("torch."):
            return []
        left = left.replace(name, "")
        edits += replace_text(context.index, node, name, known.npu)
    are_apart = len({edit.start for edit in edits}) == len(edits) and inside(context.index, node) is not None
    return edits if are_apart and not _NAMES_CUDA.search(left) else []


class ConfigOptions(Options):
    """``reads``: the functions that read a text, and the type of files that it is like.

    ``values``: what a value becomes; a ``*`` at the end is a number.
    """

    reads: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


def find_configurations(context: FileContext, rule: Rule[ConfigOptions]) -> Iterator[Match]:
    """The values of such texts whose keys name a device or a backend."""
    index = context.index
    for call in index.calls:
        kind = rule.options.reads.get(index.qualified_name(call.func))
        if kind is None or not call.args:
            continue
        node = call.args[0]
        values = index.assigned(node) if isinstance(node, ast.Name) else []
        node = values[0] if len(values) == 1 else node  # by the only name that it has
        text, place = string_value(node), inside(index, node)
        if text is None or place is None:
            continue
        # Most files that load something load no such text, and have no use for its readers.
        from migrator.other_files.index import readable

        read = readable(context.name, kind, text)
        for setting in read.content.settings if read is not None else ():
            new, span = new_value(rule.options.values, setting), setting.value_span
            fits = setting.kind == "key" and name_fits(rule.match, setting.name)
            if fits and new is not None and span is not None:
                edit = Edit(place[0] + span[0], place[0] + span[1], new)
                yield found(context, rule, node, api=f"{setting.name}: {setting.value}", edits=[edit])
