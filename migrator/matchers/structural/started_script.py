"""Commands that a program runs, whose options name CUDA: ``[sys.executable, "t.py", "--device=cuda"]``.

They change where the program that is started is one of the project, and its parser takes the value for a
device: then it is changed there, too. What other programs are told is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field
from functools import partial
from typing import Optional

from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.kinds.setting import name_fits, new_value, taken_by_own
from migrator.matchers.options import EXPRESSION
from migrator.matchers.packs import Options, Rule
from migrator.names import commands
from migrator.names.commands import Command
from migrator.names.device_strings import written
from migrator.names.index import ModuleIndex
from migrator.names.strings import inside
from migrator.names.tree import called_name
from migrator.other_files import shell
from migrator.other_files.index import FILLED, Content, Word


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
    for command in commands.commands(index):
        content = _read(index, command)
        if content is None:
            continue
        seen |= {node for word in command.words for node in ast.walk(word.node)}
        for setting in content.settings:
            fits = setting.kind == "option" and name_fits(rule.match, setting.name)
            new = new_value(options.values, setting) if fits else None
            if new is None:
                continue
            says = partial(found, context, rule, api=f"{setting.name} {setting.value or setting.begins}")
            span = first, last = setting.value_span or (-1, -1)
            holders = (word.node for word in command.words)
            around = (each for each in holders if index.start(each) <= first and last <= index.end(each))
            node = next(around, command.call)
            own = taken_by_own(context.project, context.name, content, setting, context.vocabularies)
            if setting.value_span is None or own is None or not own.device:
                yield says(node)
                continue
            message = N_("{name} {new}: the program started here uses this value for NPUs")
            yield says(node, edits=[Edit(*span, new)], message=_(message, name=setting.name, new=new))
    for node in index.strings:
        holder = index.parent(node)
        if isinstance(holder, (ast.List, ast.Tuple)):  # a word of a list
            holder = index.parent(holder)
        given = node not in seen and isinstance(holder, ast.Call) and node is not holder.func
        given = given and called_name(holder) in options.calls
        phrase = re.search(options.phrase, written(index, node)) if given else None
        if phrase:
            yield found(context, rule, node, api=phrase.group().strip())


def _read(index: ModuleIndex, command: Command) -> Optional[Content]:
    """The programs and options of a command, with their places; None where these are not known."""
    if not command.line:
        return shell.listed([_word(index, word) for word in command.words], index.span(command.call))
    node = command.words[0].node if command.words else None
    if isinstance(node, ast.JoinedStr):
        return _read_fstring(index, node)
    place = inside(index, node) if node is not None else None
    return shell.read_shell(index.data, (place,)) if place is not None else None


def _word(index: ModuleIndex, word: commands.Word) -> Word:
    """A word of a list, as the reader of shells has it; of an f-string what stands before its first field."""
    place = inside(index, word.node)
    if word.text and (place is not None or word.text.endswith(("python", ".py"))):
        return Word(word.text, place or index.span(word.node))
    parts = index.parts(word.node) if isinstance(word.node, ast.JoinedStr) else ()
    if parts and parts[0].expression is None:
        return Word(parts[0].raw + FILLED, (parts[0].start, index.end(word.node)))
    return Word(None, index.span(word.node))


def _read_fstring(index: ModuleIndex, node: ast.JoinedStr) -> Optional[Content]:
    """The same of a line with fields, in whose places variables of a shell are put, of the same length."""
    parts = index.parts(node)
    if not parts:
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
    return shell.read_shell(bytes(data), ((min(places)[0], max(last for _, last in places)),))
