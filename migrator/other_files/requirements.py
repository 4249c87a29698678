"""The packages that a file has installed, whatever its type: pip's own files, lists in settings, commands.

``read`` is the reader of ``requirements.txt`` and the like: no library keeps the places in pip's format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Optional

from migrator.files.source import Lines
from migrator.other_files.index import Command, Content, Requirement, Setting, Span, TextIndex

# Keys of lists of requirements, by type of file; the last number is that of the item.
_LISTS = {
    "toml": re.compile(
        r"(?:project\.dependencies|project\.optional-dependencies\.[^.]+|build-system\.requires"
        r"|dependency-groups\.[^.]+|tool\.uv\.(?:dev|(?:build-)?constraint|override)-dependencies"
        r"|tool\.pdm\.dev-dependencies\.[^.]+|tool\.hatch\.envs\.[^.]+\.(?:extra-)?dependencies)\.\d+"
    ),
    "yaml": re.compile(r"dependencies\.\d+(?:\.pip\.\d+)?|build\.python_packages\.\d+"),  # conda's, cog's
    "ini": re.compile(r"options\.(?:install_requires|setup_requires|extras_require\.[^.]+)(?:\.\d+)?"),
}
# Tables with an entry for each package: of Poetry, Pipenv and pixi.
_POETRY = re.compile(
    r"((?:tool\.poetry\.(?:group\.[^.]+\.)?(?:dev-)?dependencies|(?:dev-)?packages"
    r"|(?:tool\.pixi\.)?(?:feature\.[^.]+\.)?pypi-dependencies)\.([^.]+))(?:\.version)?"
)
# An entry that has its line to itself; an optional one is named again, in a list of extras.
_ENTRY = re.compile(
    r"""[ \t]*["']?[\w.-]+["']?[ \t]*=[ \t]*"""
    r"""(?:"[^"\n]*"|'[^'\n]*'|\{(?![^{}\n]*\boptional\b)[^{}\n]*\})[ \t]*(?:#.*)?\r?\n?"""
)
_PIP = re.compile(r"(?:.*/)?(?:pip[\d.]*|pipenv|uv|poetry|pdm)")
_VERBS = ("install", "add")
_CONDA = ("conda", "mamba", "micromamba")
# Options of pip and conda that take a value, which is no package.
_WITH_VALUE = frozenset(
    "-r --requirement -c --constraint -i --index-url --extra-index-url -f --find-links -e --editable -t"
    " --target -n --name -p --prefix --python --channel --proxy --timeout --retries --trusted-host"
    " --platform --root".split()
)
# One requirement, as pip, conda or poetry write it.
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\[\]]*\])?")
_OF_CONDA = re.compile(rf"(?:[\w./-]+::)?{_NAME.pattern}")  # pytorch::torchvision
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_SPECIFIER = "=<>!~("
_VERSIONS = re.compile(r"(?:[=<>!~]+\s*[\w.*+!-]+(?:\s*,\s*|\Z))*")
# Lines of pip's own files.
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
_ABOUT = re.compile(rb"[ \t]+#")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:[ \t]*=[ \t]*|[ \t]+)?([^ \t]*)")
_EDITABLE = ("-e", "--editable")
# Options by which pip asks one index alone; torch_npu is not in those of torch.
ONE_INDEX = ("--index-url", "-i")


def requirements_of(index: TextIndex) -> Iterator[Requirement]:
    """What a file has installed."""
    yield from index.content.requirements
    for setting in index.content.settings:
        if setting.kind == "key" and setting.value is not None and setting.value_span is not None:
            yield from _of_key(index, setting.name, setting.value, setting.value_span)
    for number, command in enumerate(index.content.commands):
        yield from _of_command(index, command, f"command {number}")


def _of_key(index: TextIndex, name: str, value: str, span: Span) -> Iterator[Requirement]:
    known, lines = _LISTS.get(index.type), index.lines
    if index.type == "toml" and (found := _POETRY.fullmatch(name)):
        whole = lines.span(*[lines.line_of(span[0])] * 2)
        line = whole if _ENTRY.fullmatch(index.text_of(whole)) else None
        group = found[1].rpartition(".")[0]
        yield Requirement(normalized(found[2]), span, value, span, by="poetry", group=group, line=line)
    elif known is not None and known.fullmatch(name) and "\n" not in value:
        by: Literal["pip", "conda"] = "conda" if re.match(r"dependencies\.\d+\Z", name) else "pip"
        start, end = span
        around = index.data[start - 1 : start], index.data[end : end + 1]
        quoted = (start - 1, end + 1) if around in ((b'"', b'"'), (b"'", b"'")) else span
        line, group = alone_on_line(lines, quoted), name.rpartition(".")[0]
        item = requirement_at(value, start, by, span=quoted, group=group, line=line)
        if item is not None:
            yield item


def alone_on_line(lines: Lines, span: Span) -> Optional[Span]:
    """The line of an item where nothing but a ``-``, a comma or a comment stands beside it."""
    number = lines.line_of(span[0])
    line = lines.span(number, number)
    before = lines.data[line[0] : span[0]].strip(b" \t-")
    behind = lines.data[span[1] : line[1]].strip(b", \t\r\n")
    return None if before or (behind and not behind.startswith(b"#")) else line


def _of_command(index: TextIndex, command: Command, group: str) -> Iterator[Requirement]:
    texts = [word.text or "" for word in command.words]
    for place, text in enumerate(texts[:6]):
        verbs = [verb for verb in _VERBS if verb in texts[place + 1 : place + 4]]
        if verbs and (_PIP.fullmatch(text) or text in _CONDA):
            break
    else:
        return
    by: Literal["pip", "conda"] = "conda" if texts[0] in _CONDA else "pip"
    takes = False
    for word in command.words[texts.index(verbs[0], place + 1) + 1 :]:
        if word.text is None or takes or word.text.startswith("-"):
            takes = word.text is not None and not takes and word.text in _WITH_VALUE
            continue
        raw = index.text_of(word.span)
        quoted = raw[:1] in ("'", '"')
        if raw[quoted : len(raw) - quoted] != word.text or "/" in word.text.partition("@")[0]:
            continue  # a path, or a text that is not written as it is meant
        item = requirement_at(word.text, word.span[0] + quoted, by, span=word.span, group=group)
        if item is not None:
            yield item


def read(lines: Lines) -> Content:
    """The requirements, the options and the comments of a file."""
    comments: list[Span] = []
    requirements: list[Requirement] = []
    settings: list[Setting] = []
    for first, last, body in _logical(lines, comments):
        stripped = body.strip()
        start = first + _size(body[: len(body) - len(body.lstrip())])
        if option := _OPTION.match(stripped):
            name, quote = option[1], option[2][:1] in ("'", '"')
            value = option[2].strip("\"'")
            begin = start + _size(stripped[: option.start(2)]) + quote
            span = begin, begin + _size(value)
            settings.append(Setting("option", name, (start, start + len(name)), value, span))
            stripped, start = (value, begin) if name in _EDITABLE else ("", start)
        if not stripped or stripped.startswith("-"):
            continue
        end = last  # with the indented comments below: there pip-compile says who wants it
        while end < len(lines.starts) and _ABOUT.match(lines.data, lines.starts[end]):
            end += 1
        number = lines.line_of(start)
        found = requirement_at(stripped.rstrip("\\ \t"), start, line=lines.span(number, end))
        # A backslash too many makes one of two: nobody knows what is meant.
        if found is not None and (lines.line_of(first) == last or _VERSIONS.fullmatch(found.specifier)):
            requirements.append(found)
    return Content(tuple(settings), (), tuple(comments), tuple(requirements))


def _logical(lines: Lines, comments: list[Span]) -> Iterator[tuple[int, int, str]]:
    """The lines without their comments, joined where one ends in ``\\``, with first byte and last line."""
    joined, first = "", 0
    for number, start in enumerate(lines.starts, 1):
        end = lines.content_end(number)
        line = lines.data[start:end].decode("utf-8")
        if found := _COMMENT.search(line):
            comments.append((start + _size(line[: found.start()]), end))
            line = line[: found.start()]
        first = first if joined else start
        if line.endswith("\\") and number < len(lines.starts):
            # As long as the line and its end: places behind it are right.
            joined += line[:-1] + " " * (lines.starts[number] - end + 1)
            continue
        yield first, number, joined + line
        joined = ""


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
    body, _, marker = text.partition(";")
    marker, locked = marker.partition(" --hash")[0].strip(), " --hash" in text
    body = body.partition(" --")[0]
    behind = start + _size(body.rstrip())
    whole = span or (start, start + _size(text))
    item = Requirement("", whole, "", (behind, behind), marker, "", by, group, line, locked)
    if "://" in body.partition("@")[0]:  # git+https://… without a name
        address = body.strip()
        egg = _EGG.search(address)
        last = address.partition("#")[0].rstrip("/").rpartition("/")[2]
        name = egg[1] if egg else last.partition("@")[0].partition(".git")[0].partition("-")[0]
        return item._replace(name=normalized(name), address=address)
    found = (_OF_CONDA if by == "conda" else _NAME).match(body)
    if found is None:
        return None
    end, rest = found.end(), body[found.end() :]
    item, specifier = item._replace(name=normalized(found[1])), rest.strip()
    if specifier.startswith("@"):
        return item._replace(address=specifier[1:].strip())
    if specifier and specifier[0] not in _SPECIFIER and not (by == "conda" and specifier[0].isdigit()):
        return None  # prose
    begin = start + _size(body[: end + len(rest) - len(rest.lstrip())] if specifier else body[:end])
    place = begin, begin + _size(specifier)
    return item._replace(specifier=specifier.strip("() "), specifier_span=place)


def normalized(name: str) -> str:
    """A package's name as they are compared: in lower case, with ``-``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
