"""Words of a shell: what they mean once quotes and escapes are gone, and where each part of that stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from tree_sitter import Node

from migrator.other_files.index import FILLED, Span

_VERBATIM = ("word", "number", "variable_name", "string_content", "regex", "test_operator")
_ESCAPED_IN_STRING = '"\\$`\n'


@dataclass
class ShellWord:
    """A word: its text, with a ``FILLED`` for each thing that a shell fills in, and each character's byte.

    ``variables`` are the names of the variables that are filled in, in order, empty for anything else.
    """

    span: Span
    text: str = ""
    places: list[int] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)

    @property
    def known(self) -> Optional[str]:
        """The text; None where a shell fills something in."""
        return None if FILLED in self.text else self.text

    @property
    def variable(self) -> str:
        """The variable of which the word is the value, and nothing else; or empty."""
        return self.variables[0] if self.text == FILLED else ""

    @property
    def whole(self) -> Optional[Span]:
        """Where all of the text stands, as ``place`` says."""
        return self.place(0, len(self.text))

    def place(self, start: int, end: int) -> Optional[Span]:
        """Where some characters stand; None where they do not stand there as they are meant."""
        if start == end:
            at = self.places[start] if start < len(self.places) else self.span[1]
            return (at, at) if not self.text else None
        first, last = self.places[start], self.places[end - 1]
        length = sum(len(char.encode("utf-8")) for char in self.text[start : end - 1])
        if FILLED in self.text[start:end] or last - first != length:
            return None
        return first, last + len(self.text[end - 1].encode("utf-8"))


def shell_word(node: Node, data: bytes) -> ShellWord:
    """A node of the grammar that is a word."""
    word = ShellWord(span_of(node))
    _add(word, node, data)
    return word


def variable_of(node: Node) -> str:
    """The variable that an expansion is of; empty for other expansions."""
    node = without_quotes(node)  # "$NAME"
    for child in node.children if node.type in ("simple_expansion", "expansion") else ():
        if child.type == "subscript":
            child = child.children[0]
        if child.type == "variable_name":
            return text_of(child)
    return ""


def without_quotes(node: Node) -> Node:
    """The one thing that stands between double quotes; the node itself where there are none, or more."""
    inner = [child for child in node.children if child.type != '"'] if node.type == "string" else []
    return inner[0] if len(inner) == 1 else node


def span_of(node: Node) -> Span:
    """The bytes of a node."""
    return node.start_byte, node.end_byte


def text_of(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _add(word: ShellWord, node: Node, data: bytes) -> None:
    if node.type == "raw_string":
        _take(word, data, node.start_byte + 1, node.end_byte - 1, "")
    elif node.type == "concatenation":
        for child in node.children:
            _add(word, child, data)
    elif node.type == "string":
        at = node.start_byte + 1
        for child in node.children:
            if child.type not in ('"', "string_content"):
                _take(word, data, at, child.start_byte, _ESCAPED_IN_STRING)
                _fill(word, child)
                at = child.end_byte
        _take(word, data, at, node.end_byte - 1, _ESCAPED_IN_STRING)
    elif not node.children and (node.type in _VERBATIM or _is_plain_pattern(node)):
        _take(word, data, node.start_byte, node.end_byte, "*")
    else:
        _fill(word, node)


def _is_plain_pattern(node: Node) -> bool:
    """Whether a pattern fits one text alone."""
    return node.type == "extglob_pattern" and not set(node.text or b"") & set(b"*?[](){}!+@\\")


def _fill(word: ShellWord, node: Node) -> None:
    word.text += FILLED
    word.places.append(node.start_byte)
    word.variables.append(variable_of(node))


def _take(word: ShellWord, data: bytes, start: int, end: int, escapes: str) -> None:
    """Add a text in which a backslash stands before what it makes plain: ``escapes``, or all for a ``*``."""
    text, at = data[start:end].decode("utf-8", "replace"), start
    skip, taken = False, list[str]()
    for place, char in enumerate(text):
        following = text[place + 1 : place + 2]
        if not skip and char == "\\" and following and escapes and (escapes == "*" or following in escapes):
            skip = True
        elif skip and char == "\n":
            skip = False
        else:
            skip = False
            taken.append(char)
            word.places.append(at)
        at += len(char.encode("utf-8"))
    word.text += "".join(taken)
