"""Which Python file of a project a command starts, and what that does with the values of its options.

A value changes in a script and in Python, or in neither: a script's ``--device cuda`` becomes ``npu`` where
the parser of the program that it starts comes to take ``npu``.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from migrator.files.errors import Unreadable
from migrator.files.source import read
from migrator.names.device_context import CERTAIN, LIKELY, device_context
from migrator.names.device_strings import (
    context_of_backend,
    context_of_device,
    names_backend,
    names_device,
    written,
)
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.index import ModuleIndex
from migrator.names.tree import walk
from migrator.other_files.index import FILLED, Content, Program, Setting
from migrator.project.imports import files_of
from migrator.project.parser_options import WORDS, Option, options

_SOURCE_FOLDERS = ("", "src", "python", "lib")
# For device strings, and for backends.
Vocabularies = tuple[DeviceVocabulary, DeviceVocabulary]


@dataclass(frozen=True)
class Taken:
    """What a program does with an option's value.

    ``device``: it is a device or a backend to it, by a ``certain`` place or by a name. ``choices`` are all
    that the option takes, empty where it takes more.
    """

    device: bool
    certain: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parsers:
    """The files of a program, and the options that its parsers take."""

    files: Mapping[str, ModuleIndex]
    options: Sequence[tuple[ModuleIndex, Option]]

    def named(self, name: str) -> list[tuple[ModuleIndex, Option]]:
        """The options of that name, or of which it is the beginning, as argparse has it."""
        found = [(index, option) for index, option in self.options if name in option.names]
        if not found and name.startswith("--"):
            found = [
                (index, option)
                for index, option in self.options
                if option.argparse and any(each.startswith(name) for each in option.names)
            ]
        return found


@dataclass(frozen=True)
class Programs:
    """The Python files of a project, by their names in it."""

    files: Mapping[str, Path]
    _read: dict[str, Optional[Parsers]] = field(default_factory=dict, compare=False, repr=False)

    def started(self, script: str, content: Content, program: Program) -> str:
        """The file that a program of a script's command is; empty where it is none of the project's."""
        if program.kind == "command":
            return ""
        folders = list(_folders(script, content))
        if program.kind == "module":
            path = program.name.replace(".", "/")
            named = [f"{path}.py", f"{path}/__main__.py"]
            folders = [posixpath.join(folder, each) for folder in folders for each in _SOURCE_FOLDERS]
        else:
            rest = program.name.rpartition(FILLED)[2]
            named = [rest.lstrip("/") if FILLED in program.name else rest]
        if not named[0].endswith(".py"):
            return ""
        places = (posixpath.normpath(posixpath.join(folder, name)) for folder in folders for name in named)
        found = next((place for place in places if place in self.files), "")
        return found or self._only(named)

    def _only(self, named: Iterable[str]) -> str:
        """The one file whose name ends so; empty where there are several."""
        ends = ["/" + posixpath.normpath(name) for name in named if not name.startswith(("..", "/"))]
        found = [file for file in self.files if any(f"/{file}".endswith(end) for end in ends)]
        return found[0] if len(found) == 1 else ""

    def parsers(self, file: str) -> Optional[Parsers]:
        """What the parsers of a program take; None where its file cannot be read."""
        if file not in self._read:
            self._read[file] = parsers(file, self.text)
        return self._read[file]

    def asked(self, script: str, content: Content, setting: Setting) -> Optional[Parsers]:
        """The parsers that get an option which a script's command is given.

        Where only the shell knows the program, or it is another script that may hand the option on, these are
        all of the project that have an option of that name. None where none is known.
        """
        program = content.program_of(setting)
        if program is None:
            return None
        file = self.started(script, content, program)
        if file:
            return self.parsers(file)
        if not program.name or FILLED in program.name or program.name.endswith(".sh"):
            return self._with_option(setting.name)
        return None

    def _with_option(self, name: str) -> Optional[Parsers]:
        if name not in self._read:
            written = (f'"{name}"', f"'{name}'")
            texts = ((file, self.text(file) or "") for file in self.files)
            named = [file for file, text in texts if any(each in text for each in written)]
            found = [each for each in map(self.parsers, named) if each is not None and each.named(name)]
            files = {file: index for each in found for file, index in each.files.items()}
            options = [option for each in found for option in each.options]
            self._read[name] = Parsers(files, options) if found else None
        return self._read[name]

    def text(self, name: str) -> Optional[str]:
        """The text of a file; None where there is none that can be read."""
        path = self.files.get(name)
        try:
            return None if path is None else read(path, name).text
        except Unreadable:
            return None


def parsers(file: str, text_of: Callable[[str], Optional[str]]) -> Optional[Parsers]:
    """What the parsers of the program ``file`` take; None where it cannot be read."""
    files = dict(files_of(file, text_of, {}, WORDS))
    if file not in files:
        return None
    return Parsers(files, [(index, option) for index in files.values() for option in options(index)])


def _folders(script: str, content: Content) -> Iterator[str]:
    """Where a script's relative paths may begin: where it goes with ``cd``, its folder, those around it."""
    folder = posixpath.dirname(script)
    around = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        around.append(folder)
    for command in content.commands:
        words = [word.text for word in command.words[:2]]
        if len(words) == 2 and words[0] == "cd" and words[1]:
            yield from (posixpath.join(each, words[1]) for each in around)
    yield from around


def taken(program: Parsers, name: str, value: str, vocabularies: Vocabularies) -> Optional[Taken]:
    """What a program does with the value of its option ``name``; None where its parsers have no such option.

    ``value`` is a device or a backend of CUDA, or begins as one.
    """
    found = program.named(name)
    if not found:
        return None
    is_backend = names_backend(value)
    vocabulary = vocabularies[is_backend]
    verdicts: set[str] = set()
    choices: tuple[str, ...] = ()
    for index, option in found:
        choices = choices or tuple(map(str, option.choices))
        for node in _strings(option):
            if is_backend and names_backend(written(index, node)):
                verdicts.add(context_of_backend(index, vocabulary, node).verdict)
            elif not is_backend and names_device(index, node):
                verdicts.add(context_of_device(index, vocabulary, node).verdict)
    if verdicts:
        return Taken(verdicts <= {CERTAIN, LIKELY}, verdicts == {CERTAIN} and len(found) == 1, choices)
    if choices:
        return Taken(False, choices=choices)
    dest = found[0][1].dest
    verdicts = set(_uses(program, dest, vocabulary))
    if CERTAIN in verdicts:
        return Taken(True, True)
    return Taken(LIKELY in verdicts or vocabulary.says(dest))


def _strings(option: Option) -> Iterator[ast.Constant]:
    """The texts that an option names: its default, its choices."""
    for keyword in option.call.keywords if option.call is not None else ():
        if keyword.arg in ("default", "choices", "const", "type"):
            for node in walk(keyword.value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node


def _uses(program: Parsers, dest: str, vocabulary: DeviceVocabulary) -> Iterator[str]:
    """Where ``args.dest`` goes, wherever that stands."""
    for known in program.files.values():
        if f".{dest}" not in known.text:
            continue
        index = ModuleIndex(known.text, {dest})
        for ref in index.refs:
            for node in walk(ref):
                if isinstance(node, ast.Attribute) and node.attr == dest and isinstance(node.ctx, ast.Load):
                    yield device_context(index, vocabulary, node).verdict
