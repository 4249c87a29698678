"""The values of a configuration, whatever its format, become settings and commands.

A reader of a format gives an Entry for each key and each value with its place; what in them is an
environment variable or a command is read from the keys above, the same for all formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Optional, Union

from migrator.files.source import Lines
from migrator.other_files import shell
from migrator.other_files.command_lines import starts_program
from migrator.other_files.index import Content, Setting, Span, Word, joined

Step = Union[str, int]
DEEPEST = 200  # lists and mappings inside each other: nobody nests more by hand

# Keys below which a program's environment stands.
_ENVIRONMENT = re.compile(r"(?:\w*_)?(?:env(?:s|ironments?|_?vars?|_set|_copy)?|variables)\Z", re.IGNORECASE)
_CONTAINER_ENVIRONMENT = frozenset({"containerEnv", "remoteEnv", "environment_variables"})
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_ASSIGNED = re.compile(r"([A-Z_][A-Z0-9_]*)(?:=(.*))?\Z", re.DOTALL)
# Keys whose text a shell runs, and keys whose list is one command.
_SCRIPTS = frozenset(
    "run script before_script after_script commands setup initializeCommand onCreateCommand"
    " updateContentCommand postCreateCommand postStartCommand postAttachCommand".split()
)
# What prose that begins with the name of a command has not; and options, without their command.
_SHOWS = re.compile(r"\.py\b| -|\A[A-Z_][A-Z0-9_]*=")
_BETWEEN = re.compile(r"[;&|\n]+")
_OPTIONS = re.compile(r"--?[A-Za-z]")
_OPTION = re.compile(r"--[A-Za-z][\w.-]*(?:=\S*)?")
_COMMANDS = ("entrypoint", "command", "cmd", "args")
_ESCAPES = {ord('"'): b'\\"', ord("\n"): b"\\n", ord("\t"): b"\\t"}


class Entry(NamedTuple):
    """A key with its value, or an item of a list; ``path`` are the keys and numbers that lead to it.

    ``span`` is the place of the key, of an item without one that of its value. ``value`` is None for what is
    no single value, and for none. ``value_span`` is the place of the value without quotes and other signs;
    ``verbatim`` is false where the text there is not what it means, such as a text of several lines.
    """

    path: tuple[Step, ...]
    span: Span
    value: Optional[str] = None
    value_span: Optional[Span] = None
    verbatim: bool = True

    @property
    def place(self) -> Optional[Span]:
        """Where the value can be replaced."""
        return self.value_span if self.verbatim else None


def content_of(entries: Sequence[Entry], lines: Lines, comments: Iterable[Span] = ()) -> Content:
    """What the entries of a file say."""
    named = {  # of "- name: X" and "value: Y" the values, by the path of the item
        entry.path[:-1]: entry
        for entry in entries
        if entry.path[-1] == "value" and len(entry.path) > 2 and _is_environment(entry.path[-3])
    }
    settings = tuple(
        _variable(entry, named)
        or Setting("key", ".".join(map(str, entry.path)), entry.span, entry.value, entry.place)
        for entry in entries
    )
    return joined((Content(settings, comments=tuple(comments)), *_commands(entries, lines)))


@lru_cache(maxsize=1024)
def _is_environment(step: Step) -> bool:
    return isinstance(step, str) and bool(_ENVIRONMENT.match(step) or step in _CONTAINER_ENVIRONMENT)


def _variable(entry: Entry, named: dict[tuple[Step, ...], Entry]) -> Optional[Setting]:
    """The environment variable that an entry sets or hands on."""
    path, place = entry.path, entry.place
    if len(path) < 2:
        return None
    last, above = path[-1], path[-2]
    if isinstance(last, str) and _VARIABLE.match(last) and _is_environment(above):
        return Setting("variable", last, entry.span, entry.value, place, block=path[:-1])
    if last == "name" and len(path) > 2 and _is_environment(path[-3]) and place and entry.value:
        value = named.get(path[:-1])
        found = (value.value, value.place) if value else (None, None)
        return Setting("variable", entry.value, place, *found, block=path[:-2])
    if isinstance(last, int) and _is_environment(above) and place and entry.value:
        match = _ASSIGNED.match(entry.value)
        if match:
            end = place[0] + len(match[1])
            if match[2] is None:
                return Setting("variable", match[1], (place[0], end), reads=True)
            return Setting(
                "variable", match[1], (place[0], end), match[2], (end + 1, place[1]), block=path[:-1]
            )
    return None


def is_command(value: str) -> bool:
    """Whether a value is a command, or the options of one, whatever the key is called."""
    parts = _BETWEEN.split(value) if _SHOWS.search(value) else ()
    return _OPTIONS.match(value) is not None or any(map(starts_program, parts))


def _commands(entries: Sequence[Entry], lines: Lines) -> Iterator[Content]:
    lists: dict[tuple[Step, ...], dict[str, list[Entry]]] = {}
    with_options = {entry.path[:-1] for entry in entries if _OPTION.fullmatch(entry.value or "")}
    for entry in entries:
        if not entry.value or entry.value_span is None:
            continue
        last = entry.path[-1]
        holder = entry.path[-2] if isinstance(last, int) and len(entry.path) > 1 else None  # the list's key
        is_file = isinstance(last, str) and last.endswith(".sh")  # of a ConfigMap
        if last in _SCRIPTS or last in _COMMANDS or is_file or holder in _SCRIPTS:
            yield read_written(lines.data, entry.value, entry.value_span)
        elif holder in _COMMANDS or entry.path[:-1] in with_options:
            together = entry.path[: -2 if holder in _COMMANDS else -1]
            lists.setdefault(together, {}).setdefault(str(holder), []).append(entry)
        elif not _is_environment(holder or "") and is_command(entry.value):
            yield read_written(lines.data, entry.value, entry.value_span)
    for parts in lists.values():
        # A container's command and its arguments are one command.
        held = [entry for name in dict.fromkeys((*_COMMANDS, *parts)) for entry in parts.get(name, ())]
        words = [Word(entry.value if entry.verbatim else None, entry.value_span or (0, 0)) for entry in held]
        span = (min(word.span[0] for word in words), max(word.span[1] for word in words))
        if (words[0].text or "").startswith("-"):
            words.insert(0, Word("", (held[0].span[0],) * 2))
            span = min(span[0], held[0].span[0]), span[1]
        yield shell.listed(words, span)
        for entry in held:
            if entry.value and entry.value_span and re.search(r"\s", entry.value):  # of sh -c
                yield read_written(lines.data, entry.value, entry.value_span)


# -- commands of a shell in a value, which may be indented or folded there ------


def read_written(data: bytes, value: str, span: Span) -> Content:
    """What a shell reads in a value that is written at a place of a file, with places in the file.

    Its lines may be indented or folded there. What is written with escapes is not looked at, but for quotes
    and ends of lines.
    """
    text = value.encode("utf-8")
    places = _aligned(text, data[slice(*span)])
    return Content() if places is None else read_at(data, text, [span[0] + place for place in places])


def read_at(data: bytes, text: bytes, places: Sequence[int], depth: int = 0) -> Content:
    """What a shell reads in a text, with the place of each byte in a file, and of what is behind the last."""
    before = b"$x " if text.startswith(b"-") else b""  # the options of a command that is not written here
    own = before + text

    def moved(span: Span) -> Span:
        first, last = (max(0, place - len(before)) for place in span)
        if first == last:
            return places[first], places[first]
        return places[first], places[last - 1] + 1

    def same(span: Optional[Span]) -> Optional[Span]:
        """The place of a part, where the same stands there."""
        if span is None:
            return None
        new = moved(span)
        return new if data[slice(*new)] == own[slice(*span)] else None

    found = shell.read_shell(own, depth=depth, in_value=True)
    settings = [
        item._replace(name_span=name_span, value_span=same(item.value_span))
        for item in found.settings
        if (name_span := same(item.name_span))
    ]
    commands = []
    for each in found.commands:
        words = tuple(Word(word.text, moved(word.span)) for word in each.words)
        commands.append(each._replace(words=words, span=moved(each.span)))
    comments = tuple(place for span in found.comments if (place := same(span)))
    bodies = tuple(map(moved, found.bodies))
    return Content(tuple(settings), tuple(commands), comments, bodies=bodies)


def _aligned(text: bytes, raw: bytes) -> Optional[list[int]]:
    """The place of each byte of a text in what is written; None where it is written with other escapes."""
    places = []
    place = 0
    blank = b" \t\r\n"
    for byte in text:
        while place < len(raw) and raw[place] != byte and raw[place] in blank and byte not in blank:
            place += 1
        escaped = place < len(raw) and raw[place] != byte and raw[place : place + 2] == _ESCAPES.get(byte)
        if escaped or (place < len(raw) and (raw[place] == byte or (raw[place] in blank and byte in blank))):
            places.append(place + escaped)
            place += 1 + escaped
        elif byte in blank:
            places.append(min(place, len(raw)))
        else:
            return None
    return [*places, len(raw)]
