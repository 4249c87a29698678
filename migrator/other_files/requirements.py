"""The packages that a file has installed, whatever its type: pip's own files, lists in settings, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Optional

from migrator.files.lines import Lines
from migrator.other_files.index import Command, Requirement, Setting, Span, TextIndex
from migrator.other_files.requirement_text import normalized, requirement_at

# Keys of lists of requirements, by type of file; the last number is that of the item.
_LISTS = {
    "toml": re.compile(
        r"(?:project\.dependencies|project\.optional-dependencies\.[^.]+|build-system\.requires"
        r"|dependency-groups\.[^.]+|tool\.uv\.dev-dependencies|tool\.pdm\.dev-dependencies\.[^.]+)\.\d+"
    ),
    "yaml": re.compile(r"dependencies\.\d+(?:\.pip\.\d+)?"),
    "ini": re.compile(r"options\.(?:install_requires|setup_requires|extras_require\.[^.]+)\.\d+"),
}
_POETRY = re.compile(
    r"((?:tool\.poetry\.(?:group\.[^.]+\.)?(?:dev-)?dependencies|(?:dev-)?packages)\.([^.]+))(?:\.version)?"
)
# An entry that has its line to itself; an optional one is named again, in a list of extras.
_ENTRY = re.compile(
    r"""[ \t]*["']?[\w.-]+["']?[ \t]*=[ \t]*"""
    r"""(?:"[^"\n]*"|'[^'\n]*'|\{(?![^{}\n]*\boptional\b)[^{}\n]*\})[ \t]*(?:#.*)?\r?\n?"""
)
_PIP = re.compile(r"(?:.*/)?pip[\d.]*")
_CONDA = ("conda", "mamba", "micromamba")
# Options of pip and conda that take a value, which is no package.
_WITH_VALUE = frozenset(
    "-r --requirement -c --constraint -i --index-url --extra-index-url -f --find-links -e --editable -t"
    " --target -n --name -p --prefix --python --channel --proxy --timeout --retries --trusted-host"
    " --platform --root".split()
)


def requirements_of(index: TextIndex) -> Iterator[Requirement]:
    """What a file has installed."""
    yield from index.content.requirements
    for setting in index.content.settings:
        if setting.kind == "key":
            yield from _of_setting(index, setting)
    for number, command in enumerate(index.content.commands):
        yield from _of_command(index, command, f"command {number}")


def _of_setting(index: TextIndex, setting: Setting) -> Iterator[Requirement]:
    if setting.value is None or setting.value_span is None:
        return
    known = _LISTS.get(index.type)
    if index.type == "toml" and (found := _POETRY.fullmatch(setting.name)):
        name, span = normalized(found[2]), setting.value_span
        number = index.lines.line_of(span[0])
        whole = index.lines.span(number, number)
        line = whole if _ENTRY.fullmatch(index.text_of(whole)) else None
        yield Requirement(name, span, setting.value, span, by="poetry", group=_list_of(found[1]), line=line)
    elif known is not None and known.fullmatch(setting.name):
        by: Literal["pip", "conda"] = "pip"
        if index.type == "yaml" and ".pip." not in setting.name:
            by = "conda"
        start = setting.value_span[0]
        quoted = _with_quotes(index, setting.value_span)
        line = alone_on_line(index.lines, quoted)
        item = requirement_at(setting.value, start, by, span=quoted, group=_list_of(setting.name), line=line)
        if item is not None:
            yield item


def _list_of(key: str) -> str:
    return key.rpartition(".")[0]


def _with_quotes(index: TextIndex, span: Span) -> Span:
    start, end = span
    around = index.data[start - 1 : start], index.data[end : end + 1]
    return (start - 1, end + 1) if around in ((b'"', b'"'), (b"'", b"'")) else span


def alone_on_line(lines: Lines, span: Span) -> Optional[Span]:
    """The line of an item where nothing but a ``-``, a comma or a comment stands beside it."""
    number = lines.line_of(span[0])
    line = lines.span(number, number)
    before = lines.data[line[0] : span[0]].strip(b" \t-")
    behind = lines.data[span[1] : line[1]].strip(b", \t\r\n")
    return None if before or (behind and not behind.startswith(b"#")) else line


def _of_command(index: TextIndex, command: Command, group: str) -> Iterator[Requirement]:
    words = command.words
    start = _first_package(command)
    if not start:
        return
    by: Literal["pip", "conda"] = "conda" if words[0].text in _CONDA else "pip"
    takes = False
    for word in words[start:]:
        if word.text is None or takes or word.text.startswith("-"):
            takes = word.text is not None and not takes and word.text in _WITH_VALUE
            continue
        begin, end = word.span
        raw = index.text_of(word.span)
        quoted = raw[:1] in ("'", '"')
        if raw[quoted : len(raw) - quoted] != word.text or "/" in word.text.partition("@")[0]:
            continue  # a path, or a text that is not written as it is meant
        item = requirement_at(word.text, begin + quoted, by, span=(begin, end), group=group)
        if item is not None:
            yield item


def _first_package(command: Command) -> int:
    """Behind which word of a command packages stand; 0 where it installs none."""
    texts = [word.text or "" for word in command.words]
    for place, text in enumerate(texts[:6]):
        of_pip = _PIP.fullmatch(text) is not None
        if (of_pip or text in _CONDA) and "install" in texts[place + 1 : place + 4]:
            return texts.index("install", place + 1) + 1
    return 0
