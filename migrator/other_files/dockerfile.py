"""Reader of Dockerfiles, by tree-sitter-dockerfile; what is a shell's goes to the reader of shell scripts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Optional

import tree_sitter_dockerfile
from tree_sitter import Language, Node, Parser

from migrator.files.lines import Lines
from migrator.language import _
from migrator.other_files.index import Content, NotParsedError, Setting, Span, Word, joined
from migrator.other_files.shell import listed, read_shell
from migrator.other_files.shell_words import span_of, text_of

_WITH_COMMANDS = frozenset({"run_instruction", "cmd_instruction", "entrypoint_instruction"})


@cache
def _parser() -> Parser:
    with warnings.catch_warnings():  # the grammar's package still gives a number
        warnings.simplefilter("ignore", DeprecationWarning)
        return Parser(Language(tree_sitter_dockerfile.language()))


def read(lines: Lines) -> Content:
    """What a Dockerfile says. The base image is the key ``FROM``; ``ENV`` and ``ARG`` set variables.

    Raises NotParsedError where no line of it is an instruction.
    """
    root = _parser().parse(lines.data).root_node
    if not any(node.type.endswith("_instruction") for node in root.children):
        raise NotParsedError(0, _("no instruction"))
    hidden = [
        _whole_line(part, lines.data)
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
        return Content(tuple(_base_image(node)))
    if node.type in ("env_instruction", "arg_instruction"):
        return Content(tuple(_variables(node)))
    return _commands(node, data) if node.type in _WITH_COMMANDS else Content()


def _base_image(node: Node) -> Iterator[Setting]:
    image = next((child for child in node.children if child.type == "image_spec"), None)
    if image is not None:
        name = node.children[0]
        yield Setting("key", "FROM", span_of(name), text_of(image), span_of(image))


def _variables(node: Node) -> Iterator[Setting]:
    pairs = [child for child in node.children if child.type == "env_pair"] or [node]
    for pair in pairs:
        parts = [child for child in pair.children if child.type.endswith("string")]
        if not parts:
            continue
        name, value = parts[0], parts[1] if len(parts) > 1 else None
        text, span = _value(value) if value is not None else (None, None)
        yield Setting("variable", text_of(name), span_of(name), text, span)


def _value(node: Node) -> tuple[Optional[str], Optional[Span]]:
    """What a value means and where just that stands; neither where it is put together."""
    text, (start, end) = text_of(node), span_of(node)
    if node.type != "unquoted_string":
        text, start, end = text[1:-1], start + 1, end - 1
    return (None, None) if "$" in text or "\\" in text else (text, (start, end))


def _commands(node: Node, data: bytes) -> Content:
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


def _whole_line(node: Node, data: bytes) -> Span:
    """A comment with the end of its line: a shell gets neither."""
    end = data.find(b"\n", node.end_byte)
    return node.start_byte, len(data) if end < 0 else end + 1
