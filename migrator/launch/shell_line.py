"""A line of shell and the one command in it that is wanted: its words, and what belongs to the shell.

What the shell fills in (``$VAR``, ``${X:-"a,b"}``, ``$(…)``) stands in a word as one sign that no text has;
``quoted`` gives a word as it was written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from tree_sitter import Node

from migrator.language import MessageError
from migrator.light import Frozen
from migrator.other_files.command_lines import shell_word, span_of, text_of
from migrator.other_files.index import FILLED
from migrator.other_files.shell import WORDS, nodes_in, parsed

# Commands that start the rest of their words.
_STARTERS = ("nohup", "exec", "time", "sudo", "env")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SIGNS = re.compile("[\ue000-\uf8ff]")  # of Unicode's private use; FILLED is the first


class ShellLine(Frozen):
    """The command, what stands before and after it, and its redirections; the last three as they are written.

    ``assignments`` are the words ``NAME=value`` before it, ``starters`` those such as nohup. ``signs`` has
    what each sign stands for, ``written`` each word as it is written.
    """

    before: str = ""
    assignments: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    redirections: str = ""
    after: str = ""
    signs: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)

    def quoted(self, word: str) -> str:
        """A word for a shell: as it was written, or its text quoted, with its signs as they were written."""
        if word in self.written:
            return self.written[word]
        parts = re.split(f"({_SIGNS.pattern})", word)
        return "".join(self.signs.get(part) or shlex.quote(part) for part in parts if part or not word)

    def shown(self, text: str) -> str:
        """A text in which signs are what they stand for."""
        return "".join(self.signs.get(char, char) for char in text)


def split_line(text: str, wanted: Callable[[str], bool]) -> ShellLine | None:
    """The first command of a line whose first word is ``wanted``; None where there is none.

    Raises MessageError for a line that is not shell: with a quotation mark or a bracket without its partner.
    """
    data = text.encode("utf-8")
    root = parsed(data)
    if root.has_error or _SIGNS.search(text):
        raise MessageError("not a shell command line")
    commands = (node for node in nodes_in(root, {}) if node.type == "command")
    lines = (_line(node, data) for node in commands)
    return next((line for line in lines if line.words and wanted(line.words[0])), None)


def _line(command: Node, data: bytes) -> ShellLine:
    around = command.parent
    whole = around if around is not None and around.type == "redirected_statement" else command
    redirections: list[str] = []
    given = [*_words(command, redirections), *(_words(whole, redirections) if whole is not command else ())]
    signs: dict[str, str] = {}
    written: dict[str, str] = {}
    assignments, starters, words = list[str](), list[str](), list[str]()
    for node in given:
        word, source = shell_word(node, data), text_of(node)
        text = source.partition("=")[0] + "=" if node.type == "variable_assignment" else word.text
        if node.type == "variable_assignment" and (value := node.child_by_field_name("value")) is not None:
            word = shell_word(value, data)
            text += word.text
        for filled in word.filled:
            sign = chr(ord(FILLED) + 1 + len(signs))
            signs[sign], text = filled, text.replace(FILLED, sign, 1)
        written[text] = source
        name, equals, value_text = text.partition("=")
        if equals and source.startswith(f"{name}="):  # -x NAME=value
            written[value_text] = source[len(name) + 1 :]
        kind = assignments if _ASSIGNMENT.match(text) else starters if text in _STARTERS else words
        (words or kind).append(text)
    (start, _), (_, end) = span_of(command), span_of(whole)
    before, after = (part.decode("utf-8") for part in (data[:start], data[end:]))
    own = tuple(assignments), tuple(starters), tuple(words), " ".join(redirections)
    return ShellLine(before, *own, after, signs, written)


def _words(node: Node, redirections: list[str]) -> Iterator[Node]:
    """The words of a command, and those that stand behind its redirections, which are noted."""
    for child in node.children:
        if child.type == "command_name":
            yield from child.children
        elif child.type in (*WORDS, "variable_assignment"):
            yield child
        elif child.type.endswith("redirect"):
            target, *others = child.children_by_field_name("destination") or [child]
            redirections.append((child.text or b"")[: target.end_byte - child.start_byte].decode("utf-8"))
            yield from others
