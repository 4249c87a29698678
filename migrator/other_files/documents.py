"""Reader of Markdown and reStructuredText: the blocks of shell in them; all else is for people.

Blocks are found by their fences and directives: of a document nothing else is needed, and no parser of either
format keeps places inside of blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.files.lines import Lines
from migrator.other_files.index import Content, Span, joined
from migrator.other_files.shell import read_shell

_SHELL = rb"(?:bash|sh|shell|zsh|console|shell-session|shellsession|terminal)"
_FENCE = re.compile(
    rb"^([ \t>]*)(`{3,}|~{3,})[ \t]*(?:\{?\.?(" + _SHELL + rb")\b[^\n`]*)?[^\n]*$", re.IGNORECASE
)
_DIRECTIVE = re.compile(rb"^([ \t]*)\.\. (?:code-block|code|sourcecode)::[ \t]*" + _SHELL + rb"[ \t]*\r?$")
_PROMPT = re.compile(rb"[ \t>]*(?:\([\w.-]+\) ?)?[$%] ")


def read(lines: Lines) -> Content:
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
        elif indent >= 0 and (blank or _indented(line) > indent):
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


def _indented(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


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
