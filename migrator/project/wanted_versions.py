"""The versions of torch and other libraries that a project asks for, and the torch to migrate it for."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from migrator.api_support.tables import as_tuple
from migrator.api_support.versions import in_range, known, meets
from migrator.files.errors import shown
from migrator.language import _
from migrator.light import NamedTuple

if TYPE_CHECKING:
    from migrator.api_support.libraries import Limits

# Another file that one of pip's names.
_NAMED = r"(?:-[rc]|--requirement|--constraint)[ =]*([\w./-]+)"
# In this order: what comes first counts most. A folder may hold lists for purposes of their own.
FILES = (
    *("requirements*.txt", "pyproject.toml", "setup.cfg", "setup.py"),
    *("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml", "Pipfile", "requirements/*.txt"),
    *("Dockerfile*", "docker/Dockerfile*", "cog.yaml", "*.sh", "*.ipynb"),
)
# What pages tell people to type: "pip install timm==0.4.12".
GUIDES = ("INSTALL*.md", "README*.md", "*.md")
_WITH_COMMANDS = (".md", ".sh", ".ipynb")  # of these only the lines that install count
_LARGEST = 1 << 20
_SIGNS = ("=", "<", ">")

# Compiled for the first line that names torch: most runs read none.
# torch==2.1.0, 'torch >=1.8, <2', torch = "^2.1", pytorch=1.12.1=py3.9_cuda, torch @ https://…/torch-2.1.0-cp39….whl,
# FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime
_NAME = r"(?<![\w.-])(?:py)?torch(?:\[[\w, -]*\])?"
_SIGN = r"(?:===|==|~=|>=|<=|!=|=|<|>)"
# What stands behind a library's name.
_SPECIFIED = rf"\s*\(?\s*({_SIGN}\s*[v\d][^;,\s\"'#)\\]*(?:\s*,\s*{_SIGN}\s*v?\d[\w.*+]*)*)"
_TABLE = r"""^\s*(?:py)?torch\s*=\s*(?:\{[^}]*version\s*=\s*)?["']([^"']*\d[^"']*)["']"""
_ADDRESS = rf"(?:{_NAME}\s*@\s*\S*torch-|^FROM\s+(?:\S+/)?pytorch/pytorch:)(\d+\.\d+\.\d+)"
_PART = r"(?:(===|==|~=|>=|<=|!=|=|<|>|\^|~)\s*)?v?(\d+(?:\.\d+)*)"
PINS = ("==", "===", "=", "~=", "^", "~", "")  # the signs that name one release
# What a project says of itself.
_OWN_NAME = r"""\s*name\s*=\s*["']([\w-]+)["']"""
_OWN_VERSION = r"""(?m)^__version__\s*=\s*["'](\d+(?:\.\d+)*)"""
_MARKER = r";\s*(?:\(\s*)?[\w'\"]+\s*(?:==|!=|<|>|in\b|not\b)"


class Choice(NamedTuple):
    """The version to migrate for, and why, in a line for the user."""

    version: str
    why: str


def requirement_lines(folder: Path, files: tuple[str, ...] = FILES) -> Iterator[tuple[str, int, str]]:
    """Each line of the files that fit a pattern, or that pip's files name, with its file and number.

    What cannot be read is left out. ``fnmatch`` would compile each pattern.
    """
    listed: dict[str, list[str]] = {}
    named: dict[str, None] = {}
    for pattern in files:
        inside, _, last = pattern.rpartition("/")
        begin, star, end = last.partition("*")
        if inside not in listed:
            listed[inside] = []
            with suppress(OSError):
                listed[inside] = sorted(os.listdir(folder / inside))
        for base in listed[inside]:
            fits = len(base) >= len(begin + end) and base.startswith(begin) and base.endswith(end)
            if fits if star else base == last:
                named.setdefault(posixpath.join(inside, base))
    seen, waiting = set[str](), [*named]
    for name in waiting:  # it grows
        with suppress(OSError):
            path = folder / name
            if name in seen or not path.is_file() or path.stat().st_size > _LARGEST:
                continue
            seen.add(name)
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
                if " install " in line or not name.endswith(_WITH_COMMANDS):
                    yield name, number, line
                if name.endswith(".txt") and (other := re.match(_NAMED, line)):
                    waiting.append(posixpath.normpath(posixpath.join(posixpath.dirname(name), other[1])))


def lines_with_versions(folder: Path) -> Iterator[str]:
    """The lines that may ask for a version of something, of requirements and of guides.

    A project that is a library itself asks for its own version.
    """
    for name, _number, line in requirement_lines(folder, (*FILES, *GUIDES)):
        if name in ("pyproject.toml", "setup.py") and (own := re.match(_OWN_NAME, line)):
            package = own[1].replace("-", "_")
            for place in (folder / package / "__init__.py", folder / "src" / package / "__init__.py"):
                with suppress(OSError):
                    versions = re.findall(_OWN_VERSION, place.read_text("utf-8", errors="replace"))
                    yield from (f"{own[1]}=={each}" for each in versions)
        if any(sign in line for sign in _SIGNS):
            yield line


def chosen_version(source: Path) -> Choice:
    """The version for a project, a folder or one file, of which the user names none.

    A pinned one that the package itself allows, or the next newer one known; else the newest that fits.
    """
    wanted = wanted_version(source if source.is_dir() else source.parent)
    return wanted or Choice(known()[-1].text, _("newest known version, as no requirements name one"))


def wanted_version(folder: Path) -> Optional[Choice]:
    """The version that the requirements in a folder ask for; None where they name none."""
    newest: Optional[Choice] = None
    for name, number, line in requirement_lines(folder):
        words, limits = _requirement(line)
        place = f"{shown(name)}:{number}"
        if pin := _pin_of(limits):
            # What the package says of itself has to hold: a pin that does not fit is of another time.
            own = (_requirement(each)[1] for *_place, each in requirement_lines(folder, FILES[1:4]))
            bounds = (limit for limits in own if not _pin_of(limits) for limit in limits)
            if not all(meets((*pin, 0, 0)[:3], *limit) for limit in bounds):
                continue
            # That of the same minor release, or the next newer one, which has what the project uses.
            version = next((one for one in known() if list(one.tuple[:2]) >= [*pin, 0][:2]), known()[-1])
            why = f"{place} has {words}"
            if version.tuple[:2] != pin[:2]:
                why += _(", which has no torch_npu; this is the nearest version")
            return Choice(version.text, why)
        # != excludes one micro release.
        orders = [limit for limit in limits if limit[0] != "!="]
        fitting = [each.text for each in known() if all(meets(each.tuple, *limit) for limit in orders)]
        if limits and newest is None and fitting:
            why = _("newest that fits {words} in {place}", words=words, place=place)
            newest = Choice(fitting[-1], why)
    return newest


def _requirement(line: str) -> tuple[str, Limits]:
    """The words and the limits of a line that asks for some torch on every machine; empty for another."""
    code = line.partition("#")[0]
    if "torch" not in code or re.search(_MARKER, code):
        return "", ()
    address = re.search(_ADDRESS, code)
    if address:
        return f"torch {address[1]}", (("==", as_tuple(address[1])),)
    match = re.search(_TABLE, code) or re.search(_NAME + _SPECIFIED, code)
    if match is None:
        return "", ()
    return " ".join(match[0].split()).strip("\"' ("), limits_of(match[1])


def limits_of(specified: str) -> Limits:
    """The limits in ``>=0.4, <2``, which ``_SPECIFIED`` finds, such as ``(">=", (0, 4))``."""
    parts = re.findall(_PART, specified.split("=py")[0])
    return tuple((sign, as_tuple(number)) for sign, number in parts[:4])


def _pin_of(limits: Limits) -> tuple[int, ...]:
    """The one version that limits name, empty where they name a range."""
    return next((number for sign, number in limits if sign in PINS), ())


def wanted_libraries(requirements: tuple[str, ...]) -> Mapping[str, Limits]:
    """The limits for each library of ``library_defaults.csv`` that a line asks for by a version."""
    from migrator.api_support.libraries import libraries  # lint asks for torch alone

    return wanted_of(requirements, libraries())


@cache
def wanted_of(requirements: tuple[str, ...], names: frozenset[str]) -> Mapping[str, Limits]:
    """The limits for each library that a line of requirements, or of guides, asks for by a version."""
    either = "|".join(sorted(re.escape(name).replace(r"\-", "[-_]") for name in names))
    named = re.compile(rf"(?<![\w.-])({either})(?:\[[\w, -]*\])?{_SPECIFIED}", re.IGNORECASE)
    found: dict[str, Limits] = {}
    for line in requirements if names else ():
        for match in named.finditer(line.partition("#")[0]):
            found.setdefault(match[1].lower().replace("_", "-"), limits_of(match[2]))
    return found


def limits_hold(conditions: str, limits: Limits) -> Optional[bool]:
    """Whether conditions such as ``>=4.36,<4.51`` hold for what is installed within some limits.

    None where some versions within the limits meet them and others do not.
    """
    if pin := _pin_of(limits):
        return in_range(conditions, pin)
    lowest = max((number for sign, number in limits if sign in (">=", ">")), default=())
    highest = min((number for sign, number in limits if sign in ("<=", "<")), default=None)
    sure = True
    for condition in filter(None, (part.strip() for part in conditions.split(","))):
        below, number = condition[0] == "<", as_tuple(condition.lstrip("<>= "))
        first = (*number, 0) if condition[:2] == "<=" else number  # that does not meet it
        if (lowest >= first) if below else (highest is not None and highest <= number):
            return False
        sure = sure and ((highest is not None and highest <= number) if below else lowest >= number)
    return sure or None
