"""Words of a shell, and what a command starts: ``nohup python -u train.py`` three programs.

What launchers take is in ``api_db/launch_commands.csv``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Optional

from tree_sitter import Node

from migrator.api_support import tables
from migrator.files.document import YACS_KEY
from migrator.other_files.index import FILLED, Kind, Program, Setting, Span

_VERBATIM = ("word", "number", "variable_name", "string_content", "regex", "test_operator")
# A character with the backslash that makes it plain: nowhere, between double quotes, in a bare word.
_RAW = re.compile(r"()(.)", re.DOTALL)
_QUOTED = re.compile(r"""(\\(?=["\\$`\n]))?(.)""", re.DOTALL)
_BARE = re.compile(r"(\\(?=.))?(.)", re.DOTALL)


SHELLS = ("bash", "sh", "dash")
_PYTHON = re.compile(r"python[\d.]*\Z")
_SAYS_PYTHON = re.compile(r"python|\bpy\b", re.IGNORECASE)
_ASSIGNS = re.compile(r"[A-Z_][A-Z0-9_]*=")
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*=(?!=)")
# A variable, alone or with its value, which may hold commas: ALL,NAME=0,1,OTHER
ASSIGNED = re.compile(
    r"(?:^|(?<=,))([A-Za-z_]\w*)(?:=((?:[^,]|,(?![A-Za-z_]\w*(?:[=,]|$)))*))?(?=,|$)", re.DOTALL
)


@dataclass
class ShellWord:
    """A word: its text, with a ``FILLED`` for each thing that a shell fills in, and each character's byte.

    No ``places``: the text does not stand there as it is meant.
    ``variables`` are the names of the variables that are filled in, in order, empty for anything else;
    ``filled`` is what is written for each, in its quotes.
    """

    span: Span
    text: str = ""
    places: list[int] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)

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
        if end > len(self.places):
            return None
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
        if child.type == "variable_name" or text_of(child) == "@":
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
    # Whether a pattern fits one text alone.
    fits_one = node.type == "extglob_pattern" and not set(node.text or b"") & set(b"*?[](){}!+@\\")
    if node.type == "raw_string":
        _take(word, data, node.start_byte + 1, node.end_byte - 1, _RAW)
    elif node.type == "concatenation":
        for child in node.children:
            _add(word, child, data)
    elif node.type == "string":
        at = node.start_byte + 1
        for child in node.children:
            if child.type not in ('"', "string_content"):
                _take(word, data, at, child.start_byte, _QUOTED)
                _fill(word, child, '"')
                at = child.end_byte
        _take(word, data, at, node.end_byte - 1, _QUOTED)
    elif not node.children and (node.type in _VERBATIM or fits_one):
        _take(word, data, node.start_byte, node.end_byte, _BARE)
    else:
        _fill(word, node)


def _fill(word: ShellWord, node: Node, quote: str = "") -> None:
    word.text += FILLED
    word.places.append(node.start_byte)
    word.variables.append(variable_of(node))
    word.filled.append(f"{quote}{text_of(node)}{quote}")


def _take(word: ShellWord, data: bytes, start: int, end: int, pattern: re.Pattern[str]) -> None:
    """Add a text in which a backslash may stand before a character; a joined line is one."""
    at, taken = start, list[str]()
    for found in pattern.finditer(data[start:end].decode("utf-8", "replace")):
        escape, char = found.groups("")
        if not (escape and char == "\n"):
            taken.append(char)
            word.places.append(at + len(escape))
        at += len(found.group().encode("utf-8"))
    word.text += "".join(taken)


class Launcher(NamedTuple):
    """A command that starts another one: a ``script`` of Python or a shell, or any ``command``.

    ``positionals`` are words that it takes before that. Of its options, ``flags`` take no value, ``values``
    the number of values that is said, and others one where ``others`` is ``value``. ``variables`` are those
    whose values name variables of the environment.
    """

    starts: str
    positionals: int
    others: str
    flags: frozenset[str]
    values: dict[str, int]
    variables: frozenset[str]

    def takes(self, option: str) -> int:
        """How many words behind an option are its values."""
        return 0 if option in self.flags else self.values.get(option, int(self.others == "value"))


@cache
def launchers() -> dict[str, Launcher]:
    """Every launcher that is known, by its name."""
    return {
        name: Launcher(
            starts,
            int(positionals),
            others,
            frozenset(flags.split()),
            {each.partition(":")[0]: int(each.partition(":")[2] or 1) for each in values.split()},
            frozenset(variables.split()),
        )
        for name, starts, positionals, others, flags, values, variables, _ in tables.rows("launch_commands")
    }


def launcher_of(program: Program) -> Optional[Launcher]:
    """What is known of a program that starts others; None for one that does not."""
    if program.kind == "script":
        return None
    return launchers().get("python" if is_python(program.name) else program.name)


def is_python(name: str) -> bool:
    """Whether a command is Python: ``python3.11``."""
    return _PYTHON.match(name) is not None


def starts_program(text: str) -> bool:
    """Whether a text begins as a command that starts a program does, with a variable for it, or its name."""
    first, *rest = text.split(maxsplit=2) or [""]
    name = first.rpartition("/")[2]
    known = is_python(name) or not launchers().keys().isdisjoint((name, " ".join([name, *rest[:1]])))
    return (bool(rest) and known) or name.endswith(".py") or _ASSIGNS.match(text) is not None


def programs(words: Sequence[ShellWord]) -> Iterator[Program]:
    """The programs that a command starts, each by the one before it."""
    at, kind = 0, "command"
    while at < len(words):
        program = _program(words, at, kind)
        launcher = launcher_of(program)
        if launcher is None:
            yield program
            return
        at, kind = _next(words, program, launcher)
        yield Program(program.name, program.kind, program.place, (program.words[0], min(at, len(words))))


def _program(words: Sequence[ShellWord], at: int, kind: str) -> Program:
    text = words[at].text
    own = (at + 1, len(words))
    if kind == "module":
        return Program(text, "module", at, own)
    if kind == "script" or text.endswith(".py"):
        return Program(text, "script", at, own)
    following = words[at + 1].known if at + 1 < len(words) else None
    name = text.rpartition("/")[2]
    if FILLED in name:
        runs_python = (following or "").endswith(".py") or following == "-m"
        named = any(_SAYS_PYTHON.search(variable) for variable in words[at].variables)
        name = "python" if runs_python or named else ""
    elif following is not None and f"{name} {following}" in launchers():
        return Program(f"{name} {following}", "command", at, (at + 2, len(words)))
    return Program(name, "command", at, own)


def _next(words: Sequence[ShellWord], program: Program, launcher: Launcher) -> tuple[int, str]:
    """Where the program stands that a launcher starts, and its kind."""
    at, left = program.words[0], launcher.positionals
    kind = launcher.starts
    while at < len(words):
        text = words[at].text
        name, sign, _ = text.partition("=")
        if text == "--":
            at += 1
            break
        if launcher.starts == "script" and text in ("-m", "--module") and program.name not in SHELLS:
            kind = "module"
            at += 1
            continue
        if text == "-c" and (is_python(program.name) or program.name in SHELLS):
            return len(words), kind
        if text.startswith("-") and len(text) > 1:
            at += 1 if sign else 1 + launcher.takes(name)
        elif program.name == "env" and _KEY.match(text):
            at += 1
        elif left:
            left, at = left - 1, at + 1
        elif words[at].variable and launcher.starts == "command" and at + 1 < len(words):
            at += 1  # srun $SRUN_ARGS python …
        else:
            break
    if kind == "command" and at < len(words) and words[at].text.endswith(".py"):
        kind = "script"
    return at, kind


Flow = tuple[str, Span]  # a variable, and the place of the word that is its value


def settings(program: Program, words: Sequence[ShellWord]) -> Iterator[tuple[Setting, Optional[Flow]]]:
    """The options, arguments, keys and variables among a program's own words, with where values come from."""
    launcher = launcher_of(program)
    held: Optional[ShellWord] = None  # told with the option before it
    place, end = program.words
    while place < end:
        word = words[place]
        place += 1
        name, sign, _ = word.text.partition("=")
        following = words[place] if place < end else None
        naming = word if sign else following
        if launcher is not None and name in launcher.variables and naming is not None:
            beside = words[place + 1] if launcher.takes(name) == 2 and place + 1 < end else None
            for each in _named(naming, len(name) + 1 if sign else 0):
                if beside is not None:  # -genv NAME VALUE
                    where = beside.whole if beside.known else None
                    each = each._replace(value=beside.known, value_span=where, reads=False)
                yield each, None
        if not word.text.startswith("-") or word.text in ("-", "--") or FILLED in name:
            key = _KEY.match(word.text)
            if program.kind != "command" and following and following.text and YACS_KEY.match(word.text):
                held = following
                yield _valued("key", word.text, word, 0, held)
            elif key is not None and (launcher is None or program.name == "env"):
                own = key.group()[:-1].lstrip("+~")
                yield _valued("variable" if program.name == "env" else "key", own, word, key.end(), word)
            elif program.kind != "command" and word is not held:
                yield _valued("argument", program.name, word, 0, word, word.span)
            continue
        span = word.place(0, len(name)) or word.span
        takes = launcher.takes(name) if launcher is not None else None
        if sign:
            yield _valued("option", name, word, len(name) + 1, word, span)
        elif following is None or takes == 0 or (takes is None and following.text.startswith("-")):
            yield Setting("option", name, span), None
        else:
            yield _valued("option", name, word, 0, following, span)
            place += takes or 0  # of other programs nobody knows whether the next word is a value
            held = following


def _valued(
    kind: Kind, name: str, word: ShellWord, start: int, holder: ShellWord, span: Optional[Span] = None
) -> tuple[Setting, Optional[Flow]]:
    """A setting whose value stands in a word, from a character on."""
    text = holder.text[start:]
    begins, filled, _ = text.partition(FILLED)
    where = holder.place(start, start + len(begins))
    variable = holder.variables[holder.text[:start].count(FILLED)] if text == FILLED else ""
    if kind not in ("option", "argument"):
        first = word.text.index(name)
        span = word.place(first, first + len(name))
    setting = Setting(kind, name, span or word.span, None, where if begins else None, begins=begins)
    if not filled:
        setting = setting._replace(value=text, value_span=where, begins="")
    return setting, (variable, holder.span) if variable else None


def _named(word: ShellWord, start: int) -> Iterator[Setting]:
    """The variables that an option's value names: ``ALL,NAME=value``."""
    for found in ASSIGNED.finditer(word.text[start:]):
        span = word.place(start + found.start(1), start + found.end(1))
        if span is not None and found[1] not in ("ALL", "NONE", "NIL"):
            value = found[2] if found[2] is not None and FILLED not in found[2] else None
            where = word.place(start + found.start(2), start + found.end(2)) if value else None
            yield Setting("variable", found[1], span, value, where, reads=found[2] is None)
