"""The packages that a file has installed, whatever its type: pip's own files, lists in settings, commands.

``read`` is the reader of ``requirements.txt`` and the like: no library keeps the places in pip's format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Optional

from migrator.files.lines import Lines
from migrator.other_files.index import Command, Content, Requirement, Setting, Span, TextIndex

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
# One requirement, as pip, conda or poetry write it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_CHANNEL = re.compile(r"[\w./-]+::")  # conda: pytorch::torchvision
_SPECIFIER = "=<>!~("
_VERSIONS = re.compile(r"(?:[=<>!~]+\s*[\w.*+!-]+(?:\s*,\s*|\Z))*")
# Lines of pip's own files.
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
_ABOUT = re.compile(rb"[ \t]+#")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:[ \t]*=[ \t]*|[ \t]+)?([^ \t]*)")
_EDITABLE = ("-e", "--editable")


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
        of_conda = index.type == "yaml" and ".pip." not in setting.name
        by: Literal["pip", "conda"] = "conda" if of_conda else "pip"
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


def read(lines: Lines) -> Content:
    """The requirements, the options and the comments of a file."""
    comments: list[Span] = []
    requirements: list[Requirement] = []
    settings: list[Setting] = []
    for first, last, body in _logical(lines, comments):
        stripped = body.strip()
        if not stripped:
            continue
        start = first + len(body[: len(body) - len(body.lstrip())].encode("utf-8"))
        if stripped.startswith("-"):
            setting = _option(stripped, start)
            settings += [setting] if setting else []
            if setting is None or setting.name not in _EDITABLE or not setting.value_span:
                continue
            stripped, start = str(setting.value), setting.value_span[0]
        found = requirement_at(stripped.rstrip("\\ \t"), start, line=_line(lines, first, last))
        # A backslash too many makes one of two: nobody knows what is meant.
        if found is not None and (lines.line_of(first) == last or _VERSIONS.fullmatch(found.specifier)):
            requirements.append(found)
    return Content(tuple(settings), (), tuple(comments), tuple(requirements))


def _logical(lines: Lines, comments: list[Span]) -> Iterator[tuple[int, int, str]]:
    """The lines without their comments, joined where one ends in ``\\``, with first byte and last line."""
    joined, first = "", 0
    for number in range(1, len(lines.starts) + 1):
        start, end = lines.starts[number - 1], lines.content_end(number)
        line = lines.data[start:end].decode("utf-8")
        found = _COMMENT.search(line)
        if found:
            behind = start + len(line[: found.start()].encode("utf-8"))
            comments.append((behind, end))
            line = line[: found.start()]
        first = first if joined else start
        if line.endswith("\\") and number < len(lines.starts):
            # As long as the line and its end: places behind it are right.
            joined += line[:-1] + " " * (lines.starts[number] - end + 1)
            continue
        yield first, number, joined + line
        joined = ""


def _option(text: str, start: int) -> Optional[Setting]:
    found = _OPTION.match(text)
    if found is None:
        return None
    name, value = found[1], found[2].strip("\"'")
    begin = start + len(text[: found.start(2)].encode("utf-8")) + (found[2][:1] in ("'", '"'))
    span = begin, begin + len(value.encode("utf-8"))
    return Setting("option", name, (start, start + len(name)), value, span)


def _line(lines: Lines, start: int, last: int) -> Span:
    """The lines of a requirement, with the indented comments below: there pip-compile says who wants it."""
    first = lines.line_of(start)
    while last < len(lines.starts) and _ABOUT.match(lines.data, lines.starts[last]):
        last += 1
    return lines.span(first, last)


def requirement_at(
    text: str,
    start: int,
    by: Literal["pip", "conda"] = "pip",
    *,
    span: Optional[Span] = None,
    group: str = "",
    line: Optional[Span] = None,
) -> Optional[Requirement]:
    """The requirement that a text is, None for anything else; ``start`` is the byte where it begins.

    ``span`` is the item with its quotes, where it has some.
    """
    whole = span or (start, start + _size(text))
    body, _, marker = text.partition(";")
    marker, locked = marker.partition(" --hash")[0].strip(), " --hash" in text
    body = body.partition(" --")[0]
    behind = start + _size(body.rstrip())
    item = Requirement("", whole, "", (behind, behind), marker, "", by, group, line, locked)
    if "://" in body.partition("@")[0]:  # git+https://… without a name
        return item._replace(name=_name_of_address(body.strip()), address=body.strip())
    channel = _CHANNEL.match(body) if by == "conda" else None
    found = _NAME.match(body, channel.end() if channel else 0)
    if found is None:
        return None
    end = found.end()
    if body[end : end + 1] == "[" and "]" in body[end:]:
        end = body.index("]", end) + 1
    rest = body[end:]
    first = end + len(rest) - len(rest.lstrip())
    specifier = rest.strip()
    item = item._replace(name=normalized(found.group()))
    if specifier.startswith("@"):
        return item._replace(address=specifier[1:].strip())
    if specifier and specifier[0] not in _SPECIFIER and not (by == "conda" and specifier[0].isdigit()):
        return None  # prose
    begin = start + _size(body[: first if specifier else end])
    place = begin, begin + _size(specifier)
    return item._replace(specifier=specifier.strip("() "), specifier_span=place)


def normalized(name: str) -> str:
    """A package's name as they are compared: in lower case, with ``-``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _name_of_address(address: str) -> str:
    egg = _EGG.search(address)
    if egg:
        return normalized(egg[1])
    last = address.partition("#")[0].rstrip("/").rpartition("/")[2]
    return normalized(last.partition("@")[0].partition(".git")[0].partition("-")[0])


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
