"""One requirement as pip, conda or poetry write it: its name and its version, with their places."""

from __future__ import annotations

import re
from typing import Literal, Optional

from migrator.other_files.index import Requirement, Span

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_CHANNEL = re.compile(r"[\w./-]+::")  # conda: pytorch::torchvision
_SPECIFIER = "=<>!~("


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
    if "://" in body.partition("@")[0]:  # git+https://… without a name
        name = _name_of_address(body.strip())
        behind = start + _size(body.rstrip())
        return Requirement(name, whole, "", (behind, behind), marker, body.strip(), by, group, line, locked)
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
    name = normalized(found.group())
    if specifier.startswith("@"):
        behind = start + _size(body.rstrip())
        address = specifier[1:].strip()
        return Requirement(name, whole, "", (behind, behind), marker, address, by, group, line, locked)
    if specifier and specifier[0] not in _SPECIFIER and not (by == "conda" and specifier[0].isdigit()):
        return None  # prose
    begin = start + _size(body[: first if specifier else end])
    place = begin, begin + _size(specifier)
    return Requirement(name, whole, specifier.strip("() "), place, marker, "", by, group, line, locked)


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
