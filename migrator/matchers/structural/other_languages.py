"""Strings in another language: Python code that is run, ``yaml.safe_load("device: cuda")``, commands.

Names of torch.cuda in code change where it runs among the names of its file; other code is reported. Of what
a program starts, or gives its own parsers, the options whose values are devices or backends change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import groupby

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import EXPRESSION
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import Word as ListedWord
from migrator.names.commands import commands, given_to_parsers
from migrator.names.device_strings import written
from migrator.names.goes_to import goes_to
from migrator.names.index import ModuleIndex
from migrator.names.strings import inside, replace_text
from migrator.names.tree import called_name, string_value
from migrator.other_files.index import FILLED, Content, Setting, Span, Word

_NAMES_CUDA = r"\b(?:is_)?cuda\b|\bnccl\b"
_NAME = r"\btorch\.cuda(?:\.\w+)*"
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
        if text is None or not isinstance(node, ast.Constant) or not _is_code_for_cuda(text):
            continue
        call = _runs(index, rule, node)
        if call is not None:
            called = called_name(call)
            # It runs among the names of its file where it is given no others.
            is_here = called in rule.options.here and (len(call.args) == 1 or called not in ("eval", "exec"))
            edits = _code_for_npus(context, node, text) if is_here else []
            yield found(context, rule, node, api=re.findall(_NAMES_CUDA, text)[0], edits=edits)
    for command in commands(index):
        for option, word in zip(command.texts, command.words[1:]):
            if option == "-c" and not command.line and _is_code_for_cuda(word.text):
                yield found(context, rule, word.node, api=re.findall(_NAMES_CUDA, word.text)[0])


def _is_code_for_cuda(text: str) -> bool:
    """Whether a text is Python code that names CUDA."""
    try:
        return bool(re.search(_NAMES_CUDA, text) and ast.parse(text.strip())) and not text.isidentifier()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _runs(index: ModuleIndex, rule: Rule[CodeOptions], node: ast.expr) -> ast.Call | None:
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
    names = sorted(set(re.findall(_NAME, text)), key=len, reverse=True)
    edits: list[Edit] = []
    left = text
    for name in names:
        known = npu_names.look_up(name, context.version)
        if known is None or not known.npu or not known.npu.startswith("torch."):
            return []
        left = left.replace(name, "")
        edits += replace_text(context.index, node, name, known.npu)
    are_apart = len({edit.start for edit in edits}) == len(edits) and inside(context.index, node) is not None
    return edits if are_apart and not re.search(_NAMES_CUDA, left) else []


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
        from migrator.matchers.kinds.setting import name_fits, new_value
        from migrator.other_files.index import readable

        read = readable(context.name, kind, text)
        for setting in read.content.settings if read is not None else ():
            new, span = new_value(rule.options.values, setting), setting.value_span
            fits = setting.kind == "key" and name_fits(rule.match, setting.name)
            if fits and new is not None and span is not None:
                edit = Edit(place[0] + span[0], place[0] + span[1], new)
                yield found(context, rule, node, api=f"{setting.name}: {setting.value}", edits=[edit])


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


def find_started(context: FileContext, rule: Rule[StartedOptions]) -> Iterator[Match]:
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
        said = N_("{given}: the program started here uses this value as an NPU device or backend")
        api = ", ".join(f"{each.name} {each.value or each.begins}" for each in edits.values())
        yield found(context, rule, node, api=api, edits=sorted(edits), message=_(said, given=given))
    for node in index.strings:
        holder, text = index.parent(node), written(index, node)
        if isinstance(holder, (ast.List, ast.Tuple)):  # a word of a list
            holder = index.parent(holder)
        fits = called_name(holder) in options.calls and node is not getattr(holder, "func", None)
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
        is_free_text = is_parsed and own is not None and not (own.device or own.choices)
        if is_free_text or not (is_device or is_parsed or name_fits(rule.match, setting.name)):
            continue
        first, last = setting.value_span or (-1, -1)
        spans = ((each.node, *index.span(each.node)) for each in words)
        around = (node for node, start, end in spans if start <= first and last <= end)
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


def _read_line(index: ModuleIndex, node: ast.expr) -> Content | None:
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
    every = content.commands[0].words if content and len(content.commands) == 1 else ()
    rows = [every[at : at + len(texts)] for at in range(len(every) - len(texts) + 1)]  # of a slice some
    rows = [row for row in rows if all(text in ("", word.text) for text, word in zip(texts, row))]
    if len(rows) != 1:
        return [Word(text or None, index.span(node)) for text in texts]
    (words,) = rows
    if isinstance(node, ast.JoinedStr):
        begins = (index.data[slice(*word.span)].decode("utf-8").partition("{")[0] for word in words)
        return [Word(word.text or begin + FILLED, word.span) for word, begin in zip(words, begins)]
    return list(words)


def _read_fstring(index: ModuleIndex, node: ast.JoinedStr) -> Content | None:
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
