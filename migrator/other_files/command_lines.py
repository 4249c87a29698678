"""What a command starts: ``nohup python -u train.py`` three programs, each with words of its own.

What launchers take is in ``api_db/launch_commands.csv``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Optional

from migrator.api_support import tables
from migrator.files.file_types import YACS_KEY
from migrator.other_files.index import FILLED, Program, Setting, Span
from migrator.other_files.shell_words import ShellWord

SHELLS = ("bash", "sh", "dash")
_PYTHON = re.compile(r"python[\d.]*\Z")
_SAYS_PYTHON = re.compile(r"python|\bpy\b", re.IGNORECASE)
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*=(?!=)")
_ASSIGNED = re.compile(r"(?:^|(?<=,))([A-Za-z_]\w*)(?:=([^,]*))?(?=,|$)")


@dataclass(frozen=True)
class Launcher:
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
    found = {}
    for name, starts, positionals, others, flags, values, variables, _ in tables.rows("launch_commands"):
        counts = (value.partition(":") for value in values.split())
        found[name] = Launcher(
            starts,
            int(positionals),
            others,
            frozenset(flags.split()),
            {option: int(count or 1) for option, _, count in counts},
            frozenset(variables.split()),
        )
    return found


def launcher_of(program: Program) -> Optional[Launcher]:
    """What is known of a program that starts others; None for one that does not."""
    if program.kind == "script":
        return None
    return launchers().get("python" if is_python(program.name) else program.name)


def is_python(name: str) -> bool:
    """Whether a command is Python: ``python3.11``."""
    return _PYTHON.match(name) is not None


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


@dataclass(frozen=True)
class Flow:
    """A variable whose value is all of the word at ``span``."""

    variable: str
    span: Span


def settings(
    program: Program, words: Sequence[ShellWord], command: Optional[int], number: Optional[int]
) -> Iterator[tuple[Setting, Optional[Flow]]]:
    """The options, arguments, keys and variables among a program's own words, with where values come from."""
    for setting, flow in _settings(program, words):
        yield setting._replace(command=command, program=number), flow


def _settings(program: Program, words: Sequence[ShellWord]) -> Iterator[tuple[Setting, Optional[Flow]]]:
    launcher = launcher_of(program)
    held: Optional[ShellWord] = None  # told with the option before it
    place, end = program.words
    while place < end:
        word = words[place]
        place += 1
        name, sign, _ = word.text.partition("=")
        following = words[place] if place < end else None
        if launcher is not None and name in launcher.variables:
            beside = words[place + 1] if launcher.takes(name) == 2 and place + 1 < end else None
            for each in _named(word if sign else following, len(name) + 1 if sign else 0):
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
    kind: Literal["variable", "option", "argument", "key"],
    name: str,
    word: ShellWord,
    start: int,
    holder: ShellWord,
    span: Optional[Span] = None,
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
    return setting, Flow(variable, holder.span) if variable else None


def _named(word: Optional[ShellWord], start: int) -> Iterator[Setting]:
    """The variables that an option's value names: ``ALL,NAME=value``."""
    if word is None:
        return
    for found in _ASSIGNED.finditer(word.text[start:]):
        span = word.place(start + found.start(1), start + found.end(1))
        if span is not None and found[1] not in ("ALL", "NONE", "NIL"):
            value = found[2] if found[2] is not None and FILLED not in found[2] else None
            where = word.place(start + found.start(2), start + found.end(2)) if value else None
            yield Setting("variable", found[1], span, value, where, reads=found[2] is None)
