"""What a file other than Python says: its settings, its commands and its comments, with their places.

Each type of file has a reader, a module of this package with a function ``read(lines) -> Content``.
The terms are the same for every type of file, so that one rule is about all of them.
Spans are bytes of the UTF-8 text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Callable, Literal, Optional

from migrator.files.source import Lines
from migrator.light import NamedTuple

Span = tuple[int, int]
Kind = Literal["variable", "option", "argument", "case", "key"]
FILLED = "\ue000"  # stands in a program's name for what a shell fills in


class NotParsedError(ValueError):
    """A text that is not of the type that its name says, or a template of one; ``line`` is 0 if not known."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class Setting(NamedTuple):
    """A name and, where one is written beside it, its value.

    ``kind``: a ``variable`` of the environment; an ``option`` of a command, named as it is written, such as
    ``--device``; an ``argument`` of a program of Python, named as that program is; a ``case`` of a variable
    that programs get: another value that the script gives it, or compares it with; a ``key`` of a
    configuration, named with the keys above it (``trainer.accelerator``, numbers for the items of lists).
    ``value`` is what is meant, without quotes; None where there is none, or where
    only the program that reads the file can tell. ``value_span`` is None where the text of the value is not
    what it means (escapes, several lines): then it cannot be replaced in place. ``reads``: a variable is
    asked for here, not set. ``command`` is the place in ``Content.commands`` of the one that the setting
    belongs to, and ``program`` the place in its ``programs`` of the one that gets it. Where a shell completes
    the value, ``begins`` is what stands before that (``cuda:`` of ``cuda:$RANK``), with its ``value_span``.
    ``exported``: the programs that a script starts get the variable. ``block`` is the path of the keys above
    a variable of a configuration.
    """

    kind: Kind
    name: str
    name_span: Span
    value: Optional[str] = None
    value_span: Optional[Span] = None
    reads: bool = False
    command: Optional[int] = None
    program: Optional[int] = None
    begins: str = ""
    exported: bool = False
    block: tuple[object, ...] = ()


class Word(NamedTuple):
    """A word of a command; ``text`` is None where a shell fills something in."""

    text: Optional[str]
    span: Span


class Program(NamedTuple):
    """A program that a command starts: ``nohup``, ``torchrun`` and ``train.py`` are three of one command.

    ``name`` is the last part of a command's path, the path of a ``script``, the dotted name of a ``module``,
    with a ``FILLED`` for what a shell fills in; of a command that only the shell knows it is empty.
    ``place`` is that of its word, -1 where none is written, and ``words`` the first and the last but one of
    the words that it gets itself.
    """

    name: str
    kind: Literal["command", "script", "module"]
    place: int
    words: tuple[int, int]


class Command(NamedTuple):
    """A command of a shell: its words, the program first, and the place of all, settings before it too.

    ``programs`` are those that it starts, each by the one before it. ``captured``: another command, or the
    script, reads what it prints. ``pipeline`` is the place of the whole pipeline that a command of a script
    begins; None for commands that stand in a value or in quotes.
    """

    words: tuple[Word, ...]
    span: Span
    programs: tuple[Program, ...] = ()
    captured: bool = False
    pipeline: Optional[Span] = None


class Requirement(NamedTuple):
    """A package that is to be installed.

    ``name`` is in lower case with ``-``; ``specifier`` what stands for its version (``>=2,<3``; ``=1.12`` for
    conda), at ``specifier_span``, which is empty behind the name where there is none. ``span`` is the whole
    item, with the quotes around it; ``line`` its whole line where nothing else stands there, with the
    comments about it below. ``address`` is the URL that it is installed from. ``group`` is the list, or the
    command, that it stands in. ``locked``: hashes stand beside it.
    """

    name: str
    span: Span
    specifier: str
    specifier_span: Span
    marker: str = ""
    address: str = ""
    by: Literal["pip", "conda", "poetry"] = "pip"
    group: str = ""
    line: Optional[Span] = None
    locked: bool = False


class Content(NamedTuple):
    """All that a reader finds in a text. ``comments`` are the spans of comments, with their signs.

    ``requirements`` come from readers of files that hold little else; ``other_files.requirements`` finds
    those in the settings and commands of other files.
    ``bodies`` are texts in another language: here-documents, the code of ``python -c``.
    """

    settings: tuple[Setting, ...] = ()
    commands: tuple[Command, ...] = ()
    comments: tuple[Span, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    bodies: tuple[Span, ...] = ()

    def behind(self, number: int) -> Iterator[Setting]:
        """The settings, as they count the commands behind ``number`` others."""
        for item in self.settings:
            yield item if item.command is None else item._replace(command=item.command + number)

    def program_of(self, setting: Setting) -> Optional[Program]:
        """The program that gets an option or a key of a command; None where that is not known."""
        if setting.command is None or setting.program is None:
            return None
        return self.commands[setting.command].programs[setting.program]


def joined(parts: Iterable[Content]) -> Content:
    """All that parts of a file tell, each of which counts its commands from 0."""
    settings: list[Setting] = []
    commands: list[Command] = []
    comments: list[Span] = []
    bodies: list[Span] = []
    for part in parts:
        settings += part.behind(len(commands))
        commands += part.commands
        comments += part.comments
        bodies += part.bodies
    return Content(tuple(settings), tuple(commands), tuple(comments), bodies=tuple(bodies))


class TextIndex(NamedTuple):
    """One file other than Python, read."""

    name: str
    type: str
    lines: Lines
    content: Content

    @property
    def data(self) -> bytes:
        """The text in UTF-8."""
        return self.lines.data

    def text_of(self, span: Span) -> str:
        """The text at a place."""
        return self.data[slice(*span)].decode("utf-8")


# The module of each type's reader, and its function there; what has none is not looked at by rules.
_READERS = {
    "shell": "shell.read",
    "env": "shell.read",
    "makefile": "with_shell.read_makefile",
    "yaml": "yaml.read",
    "json": "keyed.read_json",
    "toml": "keyed.read_toml",
    "ini": "keyed.read_ini",
    "pbtxt": "keyed.read_pbtxt",
    "requirements": "requirements.read",
    "dockerfile": "with_shell.read_dockerfile",
    "markdown": "with_shell.read_document",
    "rst": "with_shell.read_document",
}


def has_reader(of_type: str) -> bool:
    """Whether files of a type can be read."""
    return of_type in _READERS


@lru_cache(maxsize=1)
def read(name: str, of_type: str, text: str) -> TextIndex:
    """What a text says, of the same text once only. Raises NotParsedError where it cannot be read."""
    lines = Lines(text)
    module, _, function = _READERS[of_type].partition(".")
    reader: Callable[[Lines], Content] = getattr(import_module(f"migrator.other_files.{module}"), function)
    return TextIndex(name, of_type, lines, reader(lines))


def readable(name: str, of_type: str, text: str) -> Optional[TextIndex]:
    """The same; None where its type has no reader, and where it cannot be read."""
    try:
        return read(name, of_type, text) if has_reader(of_type) else None
    except NotParsedError:
        return None
