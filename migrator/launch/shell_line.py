"""A line of shell and the one command in it that is wanted: its words, and what belongs to the shell.

What the shell fills in (``$VAR``, ``${X:-"a,b"}``, ``$(…)``, ``~/``, ``*``) stands in a word as one sign that
no text has; ``quoted`` puts it back as it was written, outside of the quotes of the rest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from migrator.language import MessageError

# Commands that start the rest of their words, and words of the shell that stand before a command.
_STARTERS = ("nohup", "exec", "time", "sudo", "env")
_RESERVED = ("if", "then", "else", "do", "while", "until", "{", "!")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|()\n]")
_REDIRECTION = re.compile(r"\d*(?:&>>|&>|>>|>\||>&|<&|<<<|<<-?|<>|>|<)(?!\()")
_BLANK = re.compile(r"(?:[ \t]|\\\r?\n)*")
_END = re.compile(r"[ \t\n;&|()]|[<>](?!\()")  # of a word
# What the shell fills in, between double quotes and elsewhere: also $'…', a{b,c} and patterns of names.
_FILLED = re.compile(r"\$(?:\w+|[@*#?$!-])|`[^`]*`")
_FILLED_BARE = re.compile(
    rf"""{_FILLED.pattern}|\$'[^']*'|\{{(?:'[^']*'|"[^"]*"|[^\s{{}}'"])*\}}|[*?\[\]{{}}]"""
)
_HOME = re.compile(r"~[\w.-]*/?")
_OPENED = re.compile(r"\$[({]|[<>]\(")  # the last ones are a process as a file
_SINGLE = re.compile(r"'([^']*)'")
_UNCLOSED = re.compile(r"\$?'|`")
# What closes a bracket, and what may stand in it; between braces a single quote is a letter.
_BRACKETS = {
    "(": (")", re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'|[()']""", re.DOTALL)),
    "{": ("}", re.compile(r"""\\.|"(?:\\.|[^"\\])*"|[{}]""", re.DOTALL)),
}
_FIRST_SIGN, _LAST_SIGN = 0xE000, 0xF8FF  # of Unicode's private use


class ShellLineError(MessageError):
    """A line with a quotation mark or a bracket without its partner."""


@dataclass(frozen=True)
class ShellLine:
    """The command, what stands before and after it, and its redirections; the last three as they are written.

    ``assignments`` are the words ``NAME=value`` before it, ``starters`` those such as nohup.
    """

    before: str = ""
    assignments: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    redirections: str = ""
    after: str = ""
    signs: Mapping[str, str] = field(default_factory=dict)

    def quoted(self, word: str) -> str:
        """A word for a shell: its text quoted, its signs as they were written."""
        if not any(char in self.signs for char in word):
            return shlex.quote(word)
        parts = re.split(f"([{''.join(self.signs)}])", word)
        return "".join(self.signs.get(part) or shlex.quote(part) for part in parts if part)

    def shown(self, text: str) -> str:
        """A text in which signs are what they stand for."""
        return "".join(self.signs.get(char, char) for char in text)


def split_line(text: str, wanted: Callable[[str], bool]) -> ShellLine | None:
    """The first command of a line whose first word is ``wanted``; None where there is none.

    Raises ShellLineError.
    """
    reader = _Reader(text)
    while reader.at < len(text):
        command = reader.command()
        if command.words and wanted(command.words[0]):
            return command
        operator = _OPERATOR.match(text, reader.at)
        # Behind a command stands an operator, or a comment.
        reader.at = operator.end() if operator else (text.find("\n", reader.at) + 1) or len(text)
    return None


class _Reader:
    """Reads one command after the other; ``at`` is where it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.signs: dict[str, str] = {}

    def command(self) -> ShellLine:
        """The command that begins here, up to the operator behind it."""
        first = end = self._blank()
        words, assignments, starters, redirections = list[str](), list[str](), list[str](), list[str]()
        while self.at < len(self.text) and not _OPERATOR.match(self.text, self.at):
            start = self.at
            if self.text[start] == "#":
                break
            if redirection := _REDIRECTION.match(self.text, start):
                self.at = redirection.end()
                self._blank()
                self._text()
                redirections.append(self.text[start : self.at])
            else:
                word = self._text()
                if not words and self.text[start : self.at] in _RESERVED:
                    first = end = self._blank()
                    continue
                kind = assignments if _ASSIGNMENT.match(word) else starters if word in _STARTERS else words
                (words or kind).append(word)
            end = self.at
            self._blank()
        before, after, written = self.text[:first], self.text[end:], " ".join(redirections)
        return ShellLine(
            before, tuple(assignments), tuple(starters), tuple(words), written, after, self.signs
        )

    def _blank(self) -> int:
        """Go over blanks and joined lines."""
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _text(self, quote: str = "") -> str:
        """The word that begins here, or what stands before a closing double quote."""
        text, start, parts = self.text, self.at, list[str]()
        filled = _FILLED if quote else _FILLED_BARE
        while self.at < len(text) and (quote or not _END.match(text, self.at)):
            at, char, following = self.at, text[self.at], text[self.at + 1 : self.at + 2]
            if char == quote:
                self.at += 1
                return "".join(parts)
            if (opened := _OPENED.match(text, at)) and (not quote or char == "$"):
                parts.append(self._sign(self._bracket(opened.end() - 1), quote))
            elif found := filled.match(text, at) or (not quote and at == start and _HOME.match(text, at)):
                parts.append(self._sign(found.end(), quote))
            elif char == "\\" and (not quote or (following and following in '$`"\\\n')):
                parts.append(following.strip("\n"))
                self.at += 2
            elif char == '"':
                self.at += 1
                parts.append(self._text('"'))
            elif not quote and (single := _SINGLE.match(text, at)):
                parts.append(single[1])
                self.at = single.end()
            elif (unclosed := _UNCLOSED.match(text, at)) and (not quote or char == "`"):
                raise ShellLineError("no closing {mark}", mark=unclosed.group()[-1])
            else:
                parts.append(char)
                self.at += 1
        if quote:
            raise ShellLineError("no closing {mark}", mark=quote)
        return "".join(parts)

    def _bracket(self, at: int) -> int:
        """The end of what a bracket encloses, with brackets, quotes and escapes in it."""
        opening, depth = self.text[at], 0
        closing, inner = _BRACKETS[opening]
        for found in inner.finditer(self.text, at):
            depth += (found.group() == opening) - (found.group() == closing)
            if found.group() == "'":
                break
            if not depth:
                return found.end()
        raise ShellLineError("no closing {mark}", mark=closing)

    def _sign(self, end: int, quote: str) -> str:
        sign = chr(_FIRST_SIGN + len(self.signs))
        if sign > chr(_LAST_SIGN) or sign in self.text:
            raise ShellLineError("too much for the shell to fill in")
        self.signs[sign] = f"{quote}{self.text[self.at : end]}{quote}"
        self.at = end
        return sign
