"""Which Python file of a project a command starts, and what that does with the values of its options.

A value changes in a script and in Python, or in neither: a script's ``--device cuda`` becomes ``npu`` where
the parser of the program that it starts comes to take ``npu``.
"""

from __future__ import annotations

import ast
import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, wraps
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Optional, TypeVar

from migrator.files.errors import Unreadable
from migrator.files.source import read
from migrator.light import Frozen
from migrator.names.conditions import surely_runs
from migrator.names.device_context import CERTAIN, LIKELY, device_context
from migrator.names.device_strings import (
    context_of_backend,
    context_of_device,
    names_backend,
    names_device,
    written,
)
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.goes_to import behind
from migrator.names.index import ModuleIndex, parsed
from migrator.names.tree import called_name, string_value, walk
from migrator.other_files.index import FILLED, Content, Program, Setting
from migrator.project.entry import candidate
from migrator.project.module_names import folders_around, imported_names, place_of_import
from migrator.project.parser_options import WORDS, Option, given_values, place_of, span_of
from migrator.project.program_files import FileRows, ProgramFiles

_SOURCE_FOLDERS = ("", "src", "python", "lib")
_GETTERS = ("get", "getenv", "pop", "setdefault")
# The beginning of a package that lies at the project's top, or in its folder of sources.
_PACKAGE = re.compile(r"(?:(?:src|python|lib)/)?(?!tests?/|docs?/)[^/]+/__init__\.py")
_QUOTED_OPTION = re.compile(r"""-(?<=["']-)[^\s"']*(?=["'])""")
_INIT = "__init__.py"
_IMPORTERS = frozenset({"import_module", "__import__"})
_ENVIRONMENT = re.compile(r"\b(?:environ|getenv)\b")
Answer = TypeVar("Answer")
# For device strings, and for backends.
Vocabularies = tuple[DeviceVocabulary, DeviceVocabulary]


class Taken(Frozen):
    """What a program does with an option's value.

    ``device``: it is a device or a backend to it, by a ``certain`` place or by a name. ``choices`` are all
    that the option takes, empty where it takes more.
    """

    device: bool
    certain: bool = False
    choices: tuple[str, ...] = ()


class Parsers(Frozen):
    """What the parsers of a program take, by its files, or those of several, of which one is meant."""

    of: Programs
    files: Mapping[str, FileRows]

    @cached_property
    def options(self) -> Sequence[tuple[str, Option]]:
        """All options, each with its file."""
        return [(name, option) for name, rows in self.files.items() for option in rows.options]

    @cached_property
    def _at(self) -> Mapping[str, list[int]]:
        """The places of the options of each name."""
        found: dict[str, list[int]] = {}
        for at, (_, option) in enumerate(self.options):
            for name in dict.fromkeys(option.names):
                found.setdefault(name, []).append(at)
        return found

    @cached_property
    def _names(self) -> list[str]:
        return sorted(self._at)

    def named(self, name: str) -> list[tuple[str, Option]]:
        """The options of that name, or of which it is the beginning, as argparse has it, with their files."""
        if name in self._at or not name.startswith("--"):
            return [self.options[at] for at in self._at.get(name, ())]
        long = takewhile(
            lambda each: each.startswith(name), islice(self._names, bisect_left(self._names, name), None)
        )
        found = (self.options[at] for at in sorted({at for each in long for at in self._at[each]}))
        return [pair for pair in found if pair[1].argparse]

    def meant(self, content: Content, setting: Setting) -> list[tuple[str, Option]]:
        """What gets the value of a setting: options of its name, or a positional argument."""
        if setting.kind == "option":
            found = self.named(setting.name)
            if not any(option.takes == 0 for _, option in found) or setting.value is None:
                return found
        place = self.position(content, setting)
        with_some = [(name, rows) for name, rows in self.files.items() if rows.positionals]
        if place is None or len(with_some) != 1 or with_some[0][1].subparsers:
            return []
        ((file, rows),) = with_some
        last = rows.positionals[min(place, len(rows.positionals) - 1)]
        beyond = place >= len(rows.positionals) and last.takes == 1
        return (
            [] if beyond or any(option.takes != 1 for option in rows.positionals[:place]) else [(file, last)]
        )

    def position(self, content: Content, setting: Setting) -> Optional[int]:
        """How many positional arguments a program is given before this one; None where that is not known."""
        program, span = content.program_of(setting), setting.value_span or setting.name_span
        if program is None or setting.command is None:
            return None
        own = content.commands[setting.command].words[slice(*program.words)]
        wanted = next((n for n, word in enumerate(own) if word.span[0] <= span[0] < word.span[1]), None)
        if wanted is None:  # the value stands elsewhere, in a variable
            wanted = next((n for n, word in enumerate(own) if word.span == setting.name_span), None)
        texts = [word.text for word in own]
        return None if wanted is None else place_of(texts, wanted, (option for _, option in self.options))


def _kept(method: Callable[..., Answer]) -> Callable[..., Answer]:
    """A method of ``Programs`` whose answers are kept."""

    @wraps(method)
    def asked(self: Programs, *given: object) -> Answer:
        key = (method.__name__, *given)
        if key not in self._known:
            self._known[key] = method(self, *given)
        answer: Answer = self._known[key]
        return answer

    return asked


@dataclass(frozen=True)
class Programs:
    """The Python files of a project, by their names in it, and the names of its configurations.

    ``main`` is the script that the user wants to start, where that was said.
    """

    files: Mapping[str, Path]
    configurations: frozenset[str] = frozenset()
    main: str = ""
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)

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
        if found := next((place for place in places if place in self.files), ""):
            return found
        ends = tuple("/" + posixpath.normpath(name) for name in named if not name.startswith(("..", "/")))
        alike = [file for file in self.files if f"/{file}".endswith(ends)]
        return alike[0] if len(alike) == 1 else ""

    @cached_property
    def ways(self) -> Mapping[str, str]:
        """How what can be started comes to files: ``program``, ``import``, or ``perhaps`` an import.

        That are the scripts which the launcher may start, and the packages of a project without any. Empty
        where it has neither.
        """
        named = [self.main] if self.main in self.files else []
        scripts = named or [name for name in self.files if candidate(name, self.text(name) or "")]
        packages = [name for name in self.files if _PACKAGE.fullmatch(name)]
        found = dict.fromkeys(scripts, "program")
        sure = [(name, posixpath.dirname(name) if scripts else "") for name in scripts or packages]
        perhaps: list[tuple[str, str]] = []
        imports = cache(self._imports)
        own = {part.removesuffix(".py") for name in self.files for part in name.split("/")}

        @cache  # for a relative import its folder counts, for others that of the program
        def place(folder: str, module: str, member: str) -> Optional[tuple[str, str]]:
            if not module.startswith(".") and module.partition(".")[0] not in own:
                return None
            there = posixpath.join(folder, "x")
            return place_of_import(there, there, module, member, self.text)

        for way, waiting in (("import", sure), ("perhaps", perhaps)):
            seen = set(waiting)
            for name, folder in waiting:  # it grows
                if way == "perhaps" and name in found:
                    continue
                found.setdefault(name, way)
                for module, member, runs in imports(name, found[name] == "program"):
                    asking = posixpath.dirname(name) if module.startswith(".") else folder
                    there = place(asking, module, member)
                    new = (there[0], folder) if there is not None else (name, folder)
                    if way == "import" and not runs:
                        perhaps.append(new)
                    elif new not in seen:
                        seen.add(new)
                        waiting.append(new)
        return found

    def _imports(self, name: str, is_program: bool) -> Sequence[tuple[str, str, bool]]:
        """What a file imports, with the packages around it, and whether that is sure to happen.

        That are modules, and names in them. What imports by a computed name imports what lies beside it.
        """
        index = parsed(self.text(name), _IMPORTERS)
        if index is None:
            return ()
        found: dict[tuple[str, str], bool] = {}
        # What lies in a package whose folder is the project's own names itself by that.
        own = self.files[name].absolute().parents[name.count("/")].name if _INIT in self.files else "/"
        for node in index.imports:
            runs = surely_runs(index, node, is_program)
            for _, _, module, attribute in imported_names([node]):
                if module.partition(".")[0] == own:
                    module = module.partition(".")[2]
                parts = module.split(".")
                around = filter(None, (".".join(parts[:end]) for end in range(1, len(parts) + 1)))
                for key in (
                    *((each, "" if each.strip(".") else "__init__") for each in around),
                    (module, attribute),
                ):
                    found[key] = runs or found.get(key, False)
        for call in index.calls:
            if called_name(call) in _IMPORTERS and string_value(next(iter(call.args), None)) is None:
                runs, folder = surely_runs(index, call, is_program), posixpath.dirname(name)
                beside = (each.replace("/__init__.py", ".py") for each in self.files)
                modules = (each[:-3].rpartition("/") for each in beside)
                found.update(((".", last), runs) for around, _, last in modules if around == folder)
        return [(*key, runs) for key, runs in found.items()]

    @cached_property
    def _every(self) -> ProgramFiles:
        return ProgramFiles(self.text)

    @_kept
    def parsers(self, file: str) -> Optional[Parsers]:
        """What the parsers of a program take; None where its file cannot be read."""
        files = self._every.reached(file)
        return Parsers(self, files) if file in files else None

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
        unknown = not program.name or FILLED in program.name or program.name.endswith(".sh")
        return self._with_option(setting.name) if unknown and setting.kind == "option" else None

    @_kept
    def _with_option(self, name: str) -> Optional[Parsers]:
        programs = filter(None, map(self.parsers, self._mentions.get(name, ())))
        with_it = (each for each in programs if each.named(name))
        files = {file: rows for each in with_it for file, rows in each.files.items()}
        return Parsers(self, files) if files else None

    @cached_property
    def _mentions(self) -> Mapping[str, list[str]]:
        """The files that hold each option as a string."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            for name in dict.fromkeys(_QUOTED_OPTION.findall(self.text(file) or "")):
                found.setdefault(name, []).append(file)
        return found

    def is_choice(self, name: str, value: str) -> bool:
        """Whether a key's value is the name of a file, as Hydra's groups have it: ``device/cuda.yaml``."""
        path = "/".join(name.partition("@")[0].split("."))
        ends = tuple(f"/{path}/{value}{suffix}" for suffix in (".yaml", ".yml"))
        return any(f"/{each}".endswith(ends) for each in self.configurations)

    def taken_variable(self, name: str, value: str, vocabularies: Vocabularies) -> Optional[Taken]:
        """What the project's Python does with a variable of the environment; None where none reads it."""
        verdicts = self.looked_up(name, names_backend(value), True, vocabularies)
        if not verdicts:
            return None
        said = vocabularies[names_backend(value)].says(name)
        return Taken(CERTAIN in verdicts or LIKELY in verdicts or said, verdicts == {CERTAIN})

    @_kept
    def looked_up(
        self, name: str, is_backend: bool, in_environment: bool, vocabularies: Vocabularies
    ) -> frozenset[str]:
        """Where what Python looks up by a name goes: the verdicts on it as a device, or as a backend.

        A variable of the environment, or a key or member of anything. Nothing is looked up by an empty name:
        that of an item of a list that is the whole file.
        """
        files = self.files if name else ()
        every = (self.verdicts(file, name, is_backend, in_environment, vocabularies) for file in files)
        return frozenset[str]().union(*every)

    @_kept
    def verdicts(
        self, file: str, name: str, is_backend: bool, in_environment: bool, vocabularies: Vocabularies
    ) -> frozenset[str]:
        """The same for one file."""
        text, vocabulary = self.text(file) or "", vocabularies[is_backend]
        return frozenset(verdicts_on(text, name, in_environment, vocabulary) if name in text else ())

    @_kept
    def text(self, name: str) -> Optional[str]:
        """The text of a file; None where there is none that can be read."""
        try:
            return read(self.files[name], name).text if name in self.files else None
        except Unreadable:
            return None


def of_text(name: str, text: str) -> Programs:
    """A project of one Python file, which need not be on the disk."""
    return Programs({name: Path(name)}, _known={("text", name): text})


def _folders(script: str, content: Content) -> Iterator[str]:
    """Where a script's relative paths may begin: where it goes with ``cd``, its folder, those around it."""
    around = folders_around(script)
    for command in content.commands:
        words = [word.text for word in command.words[:2]]
        if len(words) == 2 and words[0] == "cd" and words[1]:
            yield from (posixpath.join(each, words[1]) for each in around)
    yield from around


def verdicts_on(text: str, name: str, in_environment: bool, vocabulary: DeviceVocabulary) -> Iterator[str]:
    """The verdict on each place of a file at which something is looked up by ``name``.

    A variable of the environment, or a key or a member of anything else.
    """
    quoted = re.search(rf"""["']{re.escape(name)}["']""", text)
    if not quoted and (in_environment or f".{name}" not in text):
        return
    index = parsed(text, {name})
    if index is None:
        return
    for string in index.strings:
        if isinstance(string, ast.Constant) and string.value == name:
            node = _look_up(index, string)
            if in_environment and behind(index, string).name == "envvar":  # of an option of click
                yield device_context(index, vocabulary, string).verdict
            if node is not None and bool(_ENVIRONMENT.search(index.segment(node))) == in_environment:
                yield device_context(index, vocabulary, node).verdict
    for ref in index.refs if not in_environment else ():
        for each in walk(ref):
            if isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, ast.Load):
                yield device_context(index, vocabulary, each).verdict


def _look_up(index: ModuleIndex, key: ast.Constant) -> Optional[ast.expr]:
    """What is looked up by a string: ``config["key"]``, ``config.get("key")``."""
    around = index.parent(key)
    if isinstance(around, ast.Subscript) and around.slice is key and isinstance(around.ctx, ast.Load):
        return around
    if isinstance(around, ast.Call) and called_name(around) in _GETTERS and around.args[:1] == [key]:
        return around
    return None


def taken(
    program: Parsers, content: Content, setting: Setting, vocabularies: Vocabularies
) -> Optional[Taken]:
    """What a program does with the value of an option or an argument; None where its parsers have none such.

    The value is a device or a backend of CUDA, or begins as one.
    """
    value = setting.value or setting.begins
    found = program.meant(content, setting)
    if not found:
        return _from_argv(program, content, setting, vocabularies)
    is_backend = names_backend(value)
    verdicts: set[str] = set()
    choices: tuple[str, ...] = ()
    for file, option in found:
        choices = choices or tuple(map(str, option.choices))
        index = ModuleIndex(program.of.text(file) or "", WORDS)
        vocabulary = vocabularies[is_backend].in_file(index)
        for node in _strings(index, option):
            if is_backend and names_backend(written(index, node)):
                verdicts.add(context_of_backend(index, vocabulary, node).verdict)
            elif not is_backend and names_device(index, node):
                verdicts.add(context_of_device(index, vocabulary, node).verdict)
    if verdicts:
        return Taken(verdicts <= {CERTAIN, LIKELY}, verdicts == {CERTAIN} and len(found) == 1, choices)
    if choices:
        return Taken(not {"npu", "hccl"}.isdisjoint(choices), choices=choices)
    dest = found[0][1].dest
    for file in program.files:
        verdicts |= program.of.verdicts(file, dest, is_backend, False, vocabularies)
    if CERTAIN in verdicts:
        return Taken(True, True)
    return Taken(LIKELY in verdicts or vocabulary.says(dest))


def _from_argv(
    program: Parsers, content: Content, setting: Setting, vocabularies: Vocabularies
) -> Optional[Taken]:
    """The same of ``sys.argv[1]``, in a program without a parser."""
    place = program.position(content, setting) if setting.kind == "argument" else None
    if place is None or program.options:
        return None
    vocabulary = vocabularies[names_backend(setting.value or setting.begins)]
    verdicts: set[str] = set()
    for file in program.files:
        if "argv" in (text := program.of.text(file) or ""):
            index = ModuleIndex(text, {"argv"})
            argv = (index.parent(ref) for ref in index.refs if index.qualified_name(ref) == "sys.argv")
            verdicts |= {
                device_context(index, vocabulary, node).verdict
                for node in argv
                if isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Constant)
                and node.slice.value == place + 1
            }
    return Taken(verdicts <= {CERTAIN, LIKELY}, verdicts == {CERTAIN}) if verdicts else None


def _strings(index: ModuleIndex, option: Option) -> Iterator[ast.Constant]:
    """The strings that an option of a file names: its default, its choices."""
    calls = (call for call in index.calls if span_of(call) == option.span)
    for name, value in (given for call in calls for given in given_values(call).items()):
        if name in ("default", "choices", "const", "type"):
            for node in walk(value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node
