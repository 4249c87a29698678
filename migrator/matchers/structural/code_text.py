"""Texts that are run as code: ``eval``, ``exec``, ``timeit``, conditions of pytest's marks, ``python -c``.

Names of torch.cuda in them change where the text runs among the names of its file; other code is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Optional

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import commands
from migrator.names.goes_to import goes_to
from migrator.names.index import ModuleIndex
from migrator.names.strings import inside, replace_text
from migrator.names.tree import called_name, string_value

_CUDA = re.compile(r"\b(?:is_)?cuda\b|\bnccl\b")
_NAME = re.compile(r"\btorch\.cuda(?:\.\w+)*")
_CODE_KEYWORDS = ("condition", "stmt", "setup")


class CodeOptions(Options):
    """``runs``: the calls that run a text; ``here``: those that run it among the names of the file."""

    runs: tuple[str, ...] = ()
    here: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[CodeOptions]) -> Iterator[Match]:
    """The texts that are run as code and name CUDA."""
    index = context.index
    for node in index.strings:
        text = string_value(node)
        if text is None or not isinstance(node, ast.Constant) or not _CUDA.search(text) or not _is_code(text):
            continue
        call = _runs(index, rule, node)
        if call is not None:
            called = called_name(call)
            # It runs among the names of its file where it is given no others.
            is_here = called in rule.options.here and (len(call.args) == 1 or called not in ("eval", "exec"))
            edits = _for_npus(context, node, text) if is_here else []
            yield found(context, rule, node, api=_CUDA.findall(text)[0], edits=edits)
    for command in commands(index):
        for option, word in zip(command.texts, command.words[1:]):
            if option == "-c" and not command.line and _CUDA.search(word.text) and _is_code(word.text):
                yield found(context, rule, word.node, api=_CUDA.findall(word.text)[0])


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
        if is_code and isinstance(call, ast.Call) and called_name(call) in rule.options.runs:
            # model.eval(), and exec of other objects; of the marks of pytest only the last name is known.
            if called_name(call) not in ("eval", "exec") or isinstance(call.func, ast.Name):
                return call
    return None


def _for_npus(context: FileContext, node: ast.Constant, text: str) -> list[Edit]:
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
    spans = {edit.start for edit in edits}
    if _CUDA.search(left) or len(spans) < len(edits) or inside(context.index, node) is None:
        return []
    return edits
