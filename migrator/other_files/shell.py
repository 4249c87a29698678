"""Reader of shell scripts, by tree-sitter-bash: places are exact, and an odd line spoils only itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Optional

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from migrator.files.lines import Lines
from migrator.other_files.index import Command, Content, Setting, Span, Word

# Words of a command that stand for their own text, once quotes are gone.
_PLAIN = ("word", "number", "raw_string", "string", "concatenation", "string_content")
_FILLED_IN = frozenset(
    "simple_expansion expansion command_substitution arithmetic_expansion process_substitution"
    " brace_expression extglob_pattern ansi_c_string translated_string".split()
)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def read(text: str, lines: Lines) -> Content:
    """What a shell script says. What the grammar cannot read is left out."""
    del text
    settings: list[Setting] = []
    commands: list[Command] = []
    comments: list[Span] = []
    for node in _nodes(_parser().parse(lines.data).root_node):
        if node.type == "comment":
            comments.append(_span(node))
        elif node.type == "command":
            commands.append(Command(tuple(_words(node)), _span(node)))
            settings += options_of(commands[-1], len(commands) - 1, lines.data)
        elif node.type == "variable_assignment":
            # Those before a command come after it in the walk's order, so the command is the last one.
            settings.append(_assignment(node, len(commands) - 1 if _is_before_command(node) else None))
        elif node.type == "variable_name" and not _is_assigned(node):
            settings.append(Setting("variable", _text(node), _span(node), reads=True))
    return Content(tuple(settings), tuple(commands), tuple(comments))


def _nodes(root: Node) -> Iterator[Node]:
    """All nodes in the order of the text, without recursion; none of a part that is no shell."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR":
            continue
        yield node
        waiting += reversed(node.children)


def _span(node: Node) -> Span:
    return node.start_byte, node.end_byte


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _is_before_command(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "command"


def _is_assigned(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "variable_assignment"


def _assignment(node: Node, command: Optional[int]) -> Setting:
    name = node.child_by_field_name("name") or node.children[0]
    value = node.child_by_field_name("value")
    if value is None:  # NAME=
        return Setting(
            "variable", _text(name), _span(name), "", (node.end_byte, node.end_byte), command=command
        )
    text, span = _meaning(value)
    return Setting("variable", _text(name), _span(name), text, span, command=command)


def _words(command: Node) -> Iterator[Word]:
    for child in command.children:
        if child.type == "command_name":
            child = child.children[0] if child.children else child
        if child.type in _PLAIN or child.type in _FILLED_IN:
            yield Word(_meaning(child)[0], _span(child))


def _meaning(node: Node) -> tuple[Optional[str], Optional[Span]]:
    """What a word means, and where just that stands; neither where a shell fills in or removes something."""
    if any(part.type in _FILLED_IN for part in _nodes(node)):
        return None, None
    start, end = _span(node)
    text = _text(node)
    if node.type == "raw_string" or (node.type == "string" and text[:1] == '"'):
        inner = text[1:-1]
        plain = node.type == "raw_string" or "\\" not in inner
        return (inner, (start + 1, end - 1)) if plain else (None, None)
    if "\\" in text or "'" in text or '"' in text:
        return None, None
    return text, (start, end)


def options_of(command: Command, number: int, data: bytes) -> Iterator[Setting]:
    """``--name value`` and ``--name=value`` among a command's words."""
    for place, word in enumerate(command.words[1:], 1):
        raw = data[slice(*word.span)].decode("utf-8")
        if not raw.startswith("-"):
            continue
        name, sign, rest = raw.partition("=")
        start = word.span[0]
        span = (start, start + len(name.encode("utf-8")))
        if sign:
            begin = span[1] + 1
            if rest[:1] in ("'", '"') and rest[-1:] == rest[:1] and len(rest) > 1:
                rest, begin = rest[1:-1], begin + 1
            known = word.text is not None or not set(rest) & set("$`\\'\"*?[{")
            value = rest if known else None
            place_of = (begin, begin + len(rest.encode("utf-8"))) if known else None
            yield Setting("option", name, span, value, place_of, command=number)
            continue
        following = command.words[place + 1] if place + 1 < len(command.words) else None
        if following is None or (following.text or "").startswith("-"):
            yield Setting("option", name, span, command=number)
            continue
        inner = following.span
        if following.text is not None:
            quoted = data[inner[0] : inner[0] + 1] in (b"'", b'"')
            inner = (inner[0] + 1, inner[1] - 1) if quoted else inner
        yield Setting(
            "option",
            name,
            span,
            following.text,
            inner if following.text is not None else None,
            command=number,
        )
