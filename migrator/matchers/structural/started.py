"""What a program starts, or gives its own parsers: options whose values are devices or backends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import groupby
from typing import Optional

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import EXPRESSION
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import Word as ListedWord
from migrator.names.commands import commands, given_to_parsers
from migrator.names.device_strings import written
from migrator.names.index import ModuleIndex
from migrator.names.strings import inside
from migrator.names.tree import called_name, string_value
from migrator.other_files.index import FILLED, Content, Setting, Span, Word

# A line that starts a script of Python, perhaps behind what fields of an f-string give.
_SCRIPT = re.compile(r"[^#\n]*(?:\.py|python[\d.]* -m \S+) -")
_KEEPING = ("append", "extend", "submit", "put", "map", "apply_async")


class StartedOptions(Options):
    """``values``: what a value becomes; a ``*`` at the end is a number.

    ``phrase`` is a regular expression for what names CUDA in a text whose words are not known, which is given
    to one of the ``calls``.
    """

    values: dict[str, str] = field(default_factory=dict)
    phrase: str = field(default="", metadata=EXPRESSION)
    calls: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[StartedOptions]) -> Iterator[Match]:
    """The options of commands, and of what may be one."""
    index, options = context.index, rule.options
    seen: set[ast.AST] = set()
    judged: list[tuple[Setting, ast.AST, str]] = []
    for command, words, content in _contents(context):
        seen |= {node for word in words for node in ast.walk(word.node)}
        judged += _judged(context, rule, command, words, content)
    # What two commands are given by one name changes for both.
    left = {setting.value_span for setting, _, new in judged if not new}
    changed: dict[ast.AST, dict[Edit, Setting]] = {}
    for setting, node, new in judged:
        if setting.value_span is None or setting.value_span in left:
            yield found(context, rule, node, api=f"{setting.name} {setting.value or setting.begins}")
        else:
            changed.setdefault(node, {})[Edit(*setting.value_span, new)] = setting
    for node, edits in changed.items():  # of one string all at once
        given = ", ".join(f"{each.name} {edit.text}" for edit, each in edits.items())
        message = _(
            "{given}: the program started here uses this value as an NPU device or backend", given=given
        )
        api = ", ".join(f"{each.name} {each.value or each.begins}" for each in edits.values())
        yield found(context, rule, node, api=api, edits=sorted(edits), message=message)
    for node in index.strings:
        holder, text = index.parent(node), written(index, node)
        if isinstance(holder, (ast.List, ast.Tuple)):  # a word of a list
            holder = index.parent(holder)
        fits = (
            isinstance(holder, ast.Call) and node is not holder.func and called_name(holder) in options.calls
        )
        # What starts a script, and is kept for whoever runs it.
        kept = isinstance(holder, (ast.Assign, ast.Return)) or called_name(holder) in _KEEPING
        phrase = re.search(options.phrase, text) if node not in seen and (fits or kept) else None
        if phrase and (fits or _SCRIPT.match(text)):
            yield found(context, rule, node, api=phrase.group().strip())


def _judged(
    context: FileContext,
    rule: Rule[StartedOptions],
    command: ast.expr,
    words: Sequence[ListedWord],
    content: Content,
) -> Iterator[tuple[Setting, ast.AST, str]]:
    """The options of a command with a device or a backend, and their new values; empty for one not known."""
    from migrator.matchers.kinds.setting import name_fits, new_value, taken_by_own  # few files need it

    index = context.index
    for setting in content.settings:
        new = new_value(rule.options.values, setting) if setting.kind in ("option", "key") else None
        if new is None:
            continue
        own = taken_by_own(context.project, context.name, content, setting, context.vocabularies)
        is_option = setting.kind == "option"  # or a key of Hydra's: device=cuda
        is_device = is_option and own is not None and own.device
        is_parsed = is_option and command in given_to_parsers(index)
        if not (is_device or is_parsed or name_fits(rule.match, setting.name)):
            continue
        first, last = setting.value_span or (-1, -1)
        around = (
            each.node for each in words if index.start(each.node) <= first and last <= index.end(each.node)
        )
        known = setting.value_span is not None and is_device
        yield setting, next(around, command), new if known else ""


def _contents(context: FileContext) -> Iterator[tuple[ast.expr, Sequence[ListedWord], Content]]:
    """The commands of a file with their programs and options; what it gives its own parsers is one, too."""
    index = context.index
    for command in commands(index):
        line = _read_line(index, command.words[0].node) if command.line and command.words else None
        if line is not None or not command.line:
            words = _listed(index, command.words)
            yield command.call, command.words, line or _as_listed(words, index.span(command.call))
    for node, given in given_to_parsers(index).items():
        place = (index.start(node), index.start(node))
        start = [Word("python", place), Word(context.name.rpartition("/")[2], place)]
        yield node, given, _as_listed([*start, *_listed(index, given)], index.span(node))


def _as_listed(words: Sequence[Word], span: Span) -> Content:
    from migrator.other_files.shell import listed  # few programs start others

    return listed(words, span)


def _as_shell(data: bytes, span: Span) -> Content:
    from migrator.other_files.shell import read_shell

    return read_shell(data, (span,))


def _listed(index: ModuleIndex, listed: Sequence[ListedWord]) -> list[Word]:
    """The words of a list, each with the place of its text."""
    words: list[Word] = []
    for node, several in groupby(listed, lambda word: word.node):
        texts = [word.text for word in several]
        is_one = len(texts) == 1 and (string_value(node) or texts[0]) == texts[0]
        words += [_word(index, node, texts[0])] if is_one else _split(index, node, texts)
    return words


def _read_line(index: ModuleIndex, node: ast.expr) -> Optional[Content]:
    if isinstance(node, ast.JoinedStr):
        return _read_fstring(index, node)
    place = inside(index, node)
    return _as_shell(index.data, place) if place is not None else None


def _word(index: ModuleIndex, node: ast.expr, text: str) -> Word:
    """A word of a list, as the reader of shells has it; of an f-string what stands before its first field."""
    if text and (isinstance(node, ast.Constant) or text.endswith(("python", ".py"))):
        return Word(text, inside(index, node) or index.span(node))
    parts = index.parts(node) if isinstance(node, ast.JoinedStr) else ()
    if parts and parts[0].expression is None and "\\" not in parts[0].raw:
        return Word(parts[0].raw + FILLED, (parts[0].start, index.end(node)))
    return Word(None, index.span(node))


def _split(index: ModuleIndex, node: ast.expr, texts: list[str]) -> list[Word]:
    """The words that a string is split into, each at its own place; at that of all where it is not known."""
    content = _read_line(index, node)
    words = content.commands[0].words if content and len(content.commands) == 1 else ()
    if len(words) != len(texts) or any(text not in ("", word.text) for text, word in zip(texts, words)):
        return [Word(text or None, index.span(node)) for text in texts]
    if isinstance(node, ast.JoinedStr):
        begins = (index.data[slice(*word.span)].decode("utf-8").partition("{")[0] for word in words)
        return [Word(word.text or begin + FILLED, word.span) for word, begin in zip(words, begins)]
    return list(words)


def _read_fstring(index: ModuleIndex, node: ast.JoinedStr) -> Optional[Content]:
    """The same of a line with fields, in whose places variables of a shell are put, of the same length."""
    parts = index.parts(node)
    if not parts or any("\\" in part.raw.replace("\\\n", "") for part in parts):  # no text as it is meant
        return None
    data = bytearray(index.data)
    fields = []
    for before, part, behind in zip((None, *parts), parts, (*parts[1:], None)):
        if part.expression is not None:
            first = before.end if before and before.expression is None else part.start - len("{")
            last = behind.start if behind and behind.expression is None else part.end + len("}")
            is_python = index.qualified_name(part.expression) == "sys.executable"
            name, fill = (b"python", b"0") if is_python else (b"$", b"x")
            data[first:last] = name.ljust(last - first, fill)[: last - first]
            fields.append((first, last))
    places = [*fields, *((part.start, part.end) for part in parts if part.expression is None)]
    return _as_shell(bytes(data), (min(places)[0], max(last for _, last in places)))
