"""Readers of files that hold shell among other things: Dockerfiles, makefiles, Markdown, reStructuredText.

What is a shell's goes to the reader of shell scripts. No grammar for
makefiles knows shell as well: a recipe is handed on in a copy of the file, of the same length, in which all
else is blank and what only make understands is written as a shell would: ``$(NAME)`` as ``${NAME}``. Of
documents only the blocks of shell count, found by their fences and directives.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache

from tree_sitter import Language, Node, Parser

from migrator.files.source import Lines
from migrator.language import _
from migrator.other_files.command_lines import span_of, text_of
from migrator.other_files.entries import is_command, read_at, read_written
from migrator.other_files.index import Content, NotParsedError, Setting, Span, Word, joined
from migrator.other_files.shell import listed, read_shell

_WITH_COMMANDS = frozenset({"run_instruction", "cmd_instruction", "entrypoint_instruction"})


@cache
def _parser() -> Parser:
    import tree_sitter_dockerfile

    with warnings.catch_warnings():  # the grammar's package still gives a number
        warnings.simplefilter("ignore", DeprecationWarning)
        return Parser(Language(tree_sitter_dockerfile.language()))


def read_dockerfile(lines: Lines) -> Content:
    """What a Dockerfile says. The base image is the key ``FROM``; ``ENV`` and ``ARG`` set variables.

    Raises NotParsedError where no line of it is an instruction.
    """
    root = _parser().parse(lines.data).root_node
    if not any(node.type.endswith("_instruction") for node in root.children):
        raise NotParsedError(0, _("no instruction"))
    hidden = [  # a comment with the end of its line: a shell gets neither
        (part.start_byte, lines.data.find(b"\n", part.end_byte) + 1 or len(lines.data))
        for node in root.children
        for shell in node.children
        if shell.type == "shell_command"
        for part in shell.children
        if part.type == "comment"
    ]
    seen = bytearray(lines.data)  # by the shell, which gets no comments of Docker
    for start, end in hidden:
        seen[start:end] = b" " * (end - start)
    data = bytes(seen)
    found = joined(_instruction(node, data) for node in root.children)
    return found._replace(comments=tuple(sorted((*found.comments, *hidden))))


def _instruction(node: Node, data: bytes) -> Content:
    """What an instruction says; ``data`` is the file without the comments inside commands."""
    if node.type == "comment":
        return Content(comments=(span_of(node),))
    if node.type == "from_instruction":
        images = [child for child in node.children if child.type == "image_spec"][:1]
        name = span_of(node.children[0])
        return Content(
            tuple(Setting("key", "FROM", name, text_of(image), span_of(image)) for image in images)
        )
    if node.type in ("env_instruction", "arg_instruction"):
        variables = tuple(_variables_of_image(node))
        held = (
            read_written(data, each.value, each.value_span)
            for each in variables
            if each.value and each.value_span and is_command(each.value)
        )
        return joined((Content(variables), *held))
    return _run(node, data) if node.type in _WITH_COMMANDS else Content()


def _variables_of_image(node: Node) -> Iterator[Setting]:
    for pair in [child for child in node.children if child.type == "env_pair"] or [node]:
        parts = [child for child in pair.children if child.type.endswith("string")]
        if not parts:
            continue
        text, span = None, None
        if len(parts) > 1:
            written, quotes = text_of(parts[1]), int(parts[1].type != "unquoted_string")
            if "$" not in written and "\\" not in written:  # else it is put together
                text = written[quotes : len(written) - quotes]
                span = parts[1].start_byte + quotes, parts[1].end_byte - quotes
        yield Setting("variable", text_of(parts[0]), span_of(parts[0]), text, span)


def _run(node: Node, data: bytes) -> Content:
    parts = {child.type: child for child in reversed(node.children)}  # the first of each type
    if array := parts.get("json_string_array"):
        words = [part for part in array.children if part.type == "json_string"]
        texts = [Word(text_of(word)[1:-1], (word.start_byte + 1, word.end_byte - 1)) for word in words]
        return listed(texts, span_of(array)) if texts else Content()
    shell, block = parts.get("shell_command"), parts.get("heredoc_block")
    if shell is None:
        return Content()
    if block is not None:
        lines = [part for part in block.children if part.type == "heredoc_line"]
        return read_shell(data, ((lines[0].start_byte, lines[-1].end_byte),)) if lines else Content()
    return read_shell(data, (span_of(shell),))._replace(comments=())


_RECIPE = re.compile(rb"^\t[@+-]*((?:[^\\\n]|\\.|\\\n)*)", re.MULTILINE | re.DOTALL)
_ASSIGNED = re.compile(
    rb"^((?:(?:export|override)[ ]+)*)([A-Za-z_][\w.-]*)[ \t]*"
    rb"(?::{1,3}|[?+!])?=[ \t]*([^\n#]*?)[ \t]*(?=\r?$|#)",
    re.MULTILINE,
)
_VALUE = re.compile(rb"(?:[^\\\n#]|\\.)*", re.DOTALL)
_EXPORTED = re.compile(rb"^(?:un)?export[ ]+([A-Za-z_]\w*)[ \t]*\r?$", re.MULTILINE)
_COMMENT_OF_MAKE = re.compile(rb"^[^\t\n#]*?(#[^\n]*)", re.MULTILINE)
_VARIABLE = re.compile(rb"\$\((\w+)\)")
_USED = re.compile(rb"\$\(([A-Za-z_][\w.-]*)\)")
_FUNCTION = re.compile(rb"\$\((?=[\w-]+ )[\w-]+")
# The variable of make that stands behind an option.
_HANDED = re.compile(rb"""[= \t]["']?\$\((\w+)\)["']?(?=\s|$)""")


def read_makefile(lines: Lines) -> Content:
    """What a makefile says."""
    data = lines.data
    shell = read_shell(bytes(_recipes(data)))
    own = list(_variables_of_make(data))
    values = {setting.name: setting for setting in own if setting.value}
    used = Counter(found[1].decode("ascii") for found in _USED.finditer(data))
    flows = [
        setting._replace(value=found.value, value_span=found.value_span)
        for setting in shell.settings
        if setting.kind in ("option", "key") and setting.value is None and setting.value_span is None
        for behind in [_HANDED.match(data, setting.name_span[1])]
        if behind and (found := values.get(behind[1].decode("ascii"))) and used[found.name] == 1
    ]
    held = [_held(data, found.start(3)) for found in _ASSIGNED.finditer(data)]
    comments = tuple(found.span(1) for found in _COMMENT_OF_MAKE.finditer(data))
    written = (_as_written(setting, data) for setting in shell.settings)
    settings = sorted([*written, *own, *flows], key=lambda item: item.name_span)
    shell = shell._replace(settings=tuple(settings), comments=(*shell.comments, *comments))
    return joined((shell, *held))


def _held(data: bytes, start: int) -> Content:
    """The options, or the command, that a variable is given."""
    found = _VALUE.match(data, start)
    text = _VARIABLE.sub(rb"${\1}", found[0] if found else b"")
    if not is_command(text.decode("utf-8", "replace")):
        return Content()
    return read_at(data, text, range(start, start + len(text) + 1))


def _recipes(data: bytes) -> bytearray:
    """The file with its recipes alone, as a shell reads them."""
    blank = bytearray(re.sub(rb"[^\n]", b" ", data))
    for found in _RECIPE.finditer(data):
        start, end = found.span(1)
        recipe = _VARIABLE.sub(rb"${\1}", data[start:end])
        recipe = _FUNCTION.sub(lambda match: b"$(" + b" " * (len(match.group()) - 2), recipe)
        recipe = recipe.replace(b"$$", b"_$").replace(b"$<", b"$_").replace(b"$^", b"$_")
        blank[start:end] = recipe.replace(b"\\\n\t", b"\\\n ")
    return blank


def _variables_of_make(data: bytes) -> Iterator[Setting]:
    exported = {found[1] for found in _EXPORTED.finditer(data)}
    for found in _ASSIGNED.finditer(data):
        value = found[3].decode("utf-8", "replace")
        known = "$" not in value and not value.endswith("\\")
        span = found.span(3) if known else None
        setting = Setting("variable", found[2].decode("ascii"), found.span(2), value if known else None, span)
        yield setting._replace(exported=b"export" in found[1] or found[2] in exported)
    for found in _EXPORTED.finditer(data):
        yield Setting("variable", found[1].decode("ascii"), found.span(1), reads=True)


def _as_written(setting: Setting, data: bytes) -> Setting:
    """A setting of a recipe without a value that only stands in the copy."""
    there = data[slice(*setting.value_span)] if setting.value_span is not None else b""
    if there == (setting.value or setting.begins).encode("utf-8"):
        return setting
    return setting._replace(value=None, value_span=None, begins="")


_SHELL_NAMES = rb"(?:bash|sh|shell|zsh|console|shell-session|shellsession|terminal)"
_FENCE = re.compile(
    rb"^([ \t>]*)(`{3,}|~{3,})[ \t]*(?:\{?\.?(" + _SHELL_NAMES + rb")\b[^\n`]*)?[^\n]*$", re.IGNORECASE
)
_DIRECTIVE = re.compile(
    rb"^([ \t]*)\.\. (?:code-block|code|sourcecode)::[ \t]*" + _SHELL_NAMES + rb"[ \t]*\r?$"
)
_PROMPT = re.compile(rb"[ \t>]*(?:\([\w.-]+\) ?)?[$%] ")


def read_document(lines: Lines) -> Content:
    """What the commands in a document's blocks of shell say."""
    return joined(read_shell(lines.data, spans) for spans in _blocks(lines))


def _blocks(lines: Lines) -> Iterator[tuple[Span, ...]]:
    """The places of each block's commands; of a session in a terminal those behind its prompts."""
    fence, is_shell, indent = b"", False, -1
    held: list[Span] = []
    for number, start in enumerate(lines.starts, 1):
        line = lines.data[start : lines.span(number, number)[1]]
        found = _FENCE.match(line.rstrip(b"\r\n"))
        blank = not line.strip()
        if fence:
            if found and found[2].startswith(fence) and found[2] == line.strip(b" \t>\r\n"):
                yield from _commands(lines.data, held)
                fence, held = b"", []
            elif is_shell:
                held.append((start, start + len(line)))
        elif indent >= 0 and (blank or len(line) - len(line.lstrip(b" \t")) > indent):
            if not re.match(rb"[ \t]+:[\w-]+:", line):  # an option of the directive
                held.append((start, start + len(line)))
        else:
            yield from _commands(lines.data, held)
            indent, held = -1, []
            directive = _DIRECTIVE.match(line.rstrip(b"\n"))
            if found:
                fence, is_shell = found[2], found[3] is not None
            elif directive:
                indent = len(directive[1])
    yield from _commands(lines.data, held)


def _commands(data: bytes, held: list[Span]) -> Iterator[tuple[Span, ...]]:
    """A block's lines together, or the commands of a session one by one, without what they print."""
    lines = [(span, _PROMPT.match(data, *span)) for span in held]
    if not any(prompt for _, prompt in lines):
        if held:
            yield ((held[0][0], held[-1][1]),)
        return
    commands: list[Span] = []
    for (_start, end), prompt in lines:
        if commands and data[slice(*commands[-1])].rstrip(b"\r\n").endswith(b"\\"):
            commands[-1] = commands[-1][0], end
        elif prompt:
            commands.append((prompt.end(), end))
    yield from ((span,) for span in commands)
