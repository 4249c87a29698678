"""A text of one type inside a file of another: commands of a shell in a Dockerfile or a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Optional

from migrator.files.lines import Lines
from migrator.other_files import shell
from migrator.other_files.index import Command, Content, Setting, Span, Word


def read_shell(data: bytes, span: Span, commands_before: int, without: Iterable[Span] = ()) -> Content:
    """What the commands at a place of a file say, with places in the file.

    The text has to stand there as the shell gets it, but for the parts ``without`` that it does not get.
    ``commands_before`` is how many commands of the file come before these, so that settings name their own.
    """
    start, end = span
    seen = bytearray(data[start:end])
    for first, last in without:
        seen[first - start : last - start] = b" " * (last - first)
    text = seen.decode("utf-8")
    content = shell.read(text, Lines(text))

    def moved(place: Span) -> Span:
        return place[0] + start, place[1] + start

    def setting(item: Setting) -> Setting:
        return replace(
            item,
            name_span=moved(item.name_span),
            value_span=moved(item.value_span) if item.value_span else None,
            command=_behind(item.command, commands_before),
        )

    def command(item: Command) -> Command:
        words = tuple(Word(word.text, moved(word.span)) for word in item.words)
        return replace(item, words=words, span=moved(item.span))

    return Content(
        tuple(map(setting, content.settings)),
        tuple(map(command, content.commands)),
        tuple(map(moved, content.comments)),
        bodies=tuple(map(moved, content.bodies)),
    )


def _behind(command: Optional[int], before: int) -> Optional[int]:
    return None if command is None else command + before
