"""What is shown of the name under the cursor: what ``npumigrate api`` says, and why there is a finding."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, Optional

from lsprotocol import types

from migrator.api_support.answer import look_up
from migrator.api_support.versions import resolve
from migrator.files.source import Source
from migrator.lint.checking import rules_of
from migrator.names.index import ModuleIndex
from migrator.names.what_is import MODULE, TENSOR, what_is
from migrator.report.rule_text import as_markdown
from migrator.server.analysis import Analysis
from migrator.server.documents import Text, whole_offset
from migrator.server.editor import touching

_WORD = re.compile(r"[^\W\d]\w*")
_DOTTED = re.compile(r"(?<![\w.])[^\W\d][\w.]*\Z")
_ROOTS = ("torch.", "torch_npu.")
_CLASSES = {TENSOR: "torch.Tensor", MODULE: "torch.nn.Module"}


def shown(analysis: Analysis, cell: Optional[int], text: Text, offset: int) -> Optional[types.Hover]:
    """What is known of the name, and of the finding, at an index of a file's or a cell's text."""
    content = analysis.question.content
    whole = whole_offset(content, cell, text, offset)
    if whole is None:
        return None
    other = isinstance(content, Source) and content.type
    name, start, end = _qualified_name(content.text, whole, not other)
    own = [item for item in analysis.found if item.cell == cell]
    here = touching(own, offset, offset, text)
    rules = analysis.question.target.rules
    statuses = (_api_status(each, rules.settings.version) for each in (name, *(item.api for item in here)))
    parts = list(filter(None, statuses))[:1]
    every = rules_of(rules).every
    for code in dict.fromkeys(item.code for item in here):  # each rule once, with an example
        parts.append(as_markdown(replace(every[code], examples=every[code].examples[:1]), 4))
    if not parts:
        return None
    span = types.Range(text.place(offset + start - whole), text.place(offset + end - whole))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(parts)), span)


def explained(analysis: Analysis, code: str) -> Optional[str]:
    """A rule as Markdown, with all of its examples; None where there is no such rule."""
    rule = rules_of(analysis.question.target.rules).every.get(code)
    return as_markdown(rule) if rule else None


def _qualified_name(text: str, offset: int, python: bool) -> tuple[str, int, int]:
    """What the name at an index of a text stands for, and where its last word starts and ends.

    Empty where that is not known. In a text that is not Python, a name that is written
    out in full is known all the same; so is a word inside a text, for environment variables.
    """
    word = next((m for m in _WORD.finditer(text, _line_start(text, offset)) if m.end() >= offset), None)
    if word is None or word.start() > offset:
        return "", offset, offset
    try:
        name = _in_tree(text, word) if python else word.group()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        name = _as_written(text, word)
    return name, word.start(), word.end()


@lru_cache(maxsize=256)
def _api_status(name: str, version: str) -> str:
    """What ``npumigrate api NAME -v VERSION`` prints, as Markdown; empty where nothing is known."""
    variable = name.isupper()
    if not variable and not name.startswith(_ROOTS):
        return ""
    found = look_up(name)
    if found is None or (found.kind == "environment") != variable:
        return ""
    from migrator.report.api_text import page
    from migrator.report.colors import plain

    head, _, *lines = (plain(line) for line in page(found, resolve(version)))
    body = "\n".join(lines).strip("\n")
    return f"**{head}**\n\n```text\n{body}\n```" if body else ""


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _in_tree(text: str, word: re.Match[str]) -> str:
    index = ModuleIndex(text, [word.group()])
    start = len(text[: word.start()].encode("utf-8"))
    end = start + len(word.group().encode("utf-8"))
    for ref in index.refs:
        node: Any = ref
        while node is not None:
            if index.end(node) == end and (isinstance(node, ast.Name) or index.start(node) < start):
                return index.qualified_name(node) or _of_object(index, node)
            node = node.value if isinstance(node, ast.Attribute) else None
    if any(index.start(node) <= start and end <= index.end(node) for node in index.strings):
        return word.group() if word.group().isupper() else ""
    for statement in index.imports:
        if index.start(statement) <= start and end <= index.end(statement):
            return _imported(statement, word.group()) or _as_written(text, word)
    return ""


def _of_object(index: ModuleIndex, node: Any) -> str:
    """A method of a tensor or a module, by what the object surely is."""
    if not isinstance(node, ast.Attribute):
        return ""
    value = what_is(index, node.value)
    if value.kind not in _CLASSES:
        return ""
    own = f"{value.name}.{node.attr}"
    return own if value.kind == MODULE and look_up(own) else f"{_CLASSES[value.kind]}.{node.attr}"


def _imported(statement: ast.Import | ast.ImportFrom, word: str) -> str:
    if isinstance(statement, ast.ImportFrom) and not statement.level:
        for alias in statement.names:
            if word in (alias.name, alias.asname):
                return f"{statement.module}.{alias.name}"
    for alias in statement.names:
        if word == alias.asname:
            return alias.name
    return ""


def _as_written(text: str, word: re.Match[str]) -> str:
    """The dotted name that ends with a word."""
    before: Optional[re.Match[str]] = _DOTTED.search(text, _line_start(text, word.start()), word.end())
    return before.group() if before else word.group()
