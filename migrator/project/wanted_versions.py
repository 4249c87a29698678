"""The versions of torch and other libraries that a project asks for, and the torch to migrate it for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional

from migrator.api_support.tables import as_tuple
from migrator.api_support.versions import TorchVersion, in_range, known
from migrator.files.errors import shown
from migrator.language import _
from migrator.project.requirement_files import requirement_lines

if TYPE_CHECKING:
    from migrator.api_support.library_defaults import Limits

# torch==2.1.0, 'torch >=1.8, <2', torch = "^2.1", pytorch=1.12.1=py3.9_cuda, torch @ https://…/torch-2.1.0-cp39….whl
_NAME = r"(?<![\w.-])(?:py)?torch(?:\[[\w, -]*\])?"
_SIGN = r"(?:===|==|~=|>=|<=|!=|=|<|>)"
# What stands behind a library's name.
SPECIFIED = rf"\s*\(?\s*({_SIGN}\s*[v\d][^;,\s\"'#)]*(?:\s*,\s*{_SIGN}\s*v?\d[\w.*+]*)*)"
_SPECIFIED = re.compile(_NAME + SPECIFIED)
_TABLE = re.compile(r"""^\s*(?:py)?torch\s*=\s*(?:\{[^}]*version\s*=\s*)?["']([^"']*\d[^"']*)["']""")
_ADDRESS = re.compile(rf"{_NAME}\s*@\s*\S*torch-(\d+\.\d+\.\d+)")
_PART = re.compile(r"(?:(===|==|~=|>=|<=|!=|=|<|>|\^|~)\s*)?v?(\d+(?:\.\d+)*)")
PINS = ("==", "===", "=", "~=", "^", "~", "")  # the signs that name one release
_MARKER = re.compile(r";\s*(?:\(\s*)?[\w'\"]+\s*(?:==|!=|<|>|in\b|not\b)")


class Requirement(NamedTuple):
    """What a line asks for: its words, and the limits in them, such as ``("==", (2, 1, 0))``."""

    place: str
    words: str
    limits: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def pin(self) -> tuple[int, ...]:
        """The one version that it names, empty where it names a range."""
        return next((number for sign, number in self.limits if sign in PINS), ())


class Choice(NamedTuple):
    """The version to migrate for, and why, in a line for the user."""

    version: str
    why: str


def chosen_version(source: Path) -> Choice:
    """The version for a project, a folder or one file, of which the user names none.

    A pinned one, or the next newer one that is known; else the newest that fits; else the newest.
    """
    wanted = wanted_version(source if source.is_dir() else source.parent)
    return wanted or Choice(known()[-1].text, _("the newest known version, as no requirements name one"))


def wanted_version(folder: Path) -> Optional[Choice]:
    """The version that the requirements in a folder ask for; None where they name none."""
    found = tuple(_requirements(folder))
    pinned = next((one for one in found if one.pin), None)
    if pinned is not None:
        version = _nearest(pinned.pin)
        why = f"{pinned.place} has {pinned.words}"
        if version.tuple[:2] != pinned.pin[:2]:
            why += _(", for which no torch_npu is known; this is the nearest version")
        return Choice(version.text, why)
    for one in found:
        fitting = [version for version in known() if all(_fits(version.tuple, limit) for limit in one.limits)]
        if fitting:
            return Choice(
                fitting[-1].text,
                _("the newest that fits {words} in {place}", words=one.words, place=one.place),
            )
    return None


def _nearest(pin: Sequence[int]) -> TorchVersion:
    """The known version of the same minor release, or the next newer one, which has what the project uses."""
    return next((one for one in known() if list(one.tuple[:2]) >= [*pin, 0][:2]), known()[-1])


def _fits(version: tuple[int, ...], limit: tuple[str, tuple[int, ...]]) -> bool:
    sign, number = limit
    short = version[: len(number)]
    holds = {">=": short >= number, "<=": short <= number, ">": version > number, "<": version < number}
    return holds.get(sign, True)  # != excludes one micro release


def _requirements(folder: Path) -> Iterator[Requirement]:
    for name, number, line in requirement_lines(folder):
        found = _requirement(line)
        if found:
            words, limits = found
            yield Requirement(f"{shown(name)}:{number}", words, limits)


def _requirement(line: str) -> tuple[str, tuple[tuple[str, tuple[int, ...]], ...]] | None:
    """The words and the limits of a line that asks for some torch on every machine."""
    code = line.partition("#")[0]
    if _MARKER.search(code):
        return None
    address = _ADDRESS.search(code)
    if address:
        return f"torch {address[1]}", (("==", as_tuple(address[1])),)
    match = _TABLE.search(code) or _SPECIFIED.search(code)
    if match is None:
        return None
    return " ".join(match[0].split()).strip("\"' ("), limits_of(match[1])


def limits_of(specified: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The limits in ``>=0.4, <2``, which ``SPECIFIED`` finds."""
    parts = _PART.findall(specified.split("=py")[0])
    return tuple((sign, as_tuple(number)) for sign, number in parts[:4])


def wanted_libraries(requirements: tuple[str, ...]) -> Mapping[str, Limits]:
    """The limits for each library of ``library_defaults.csv`` that a line asks for by a version."""
    from migrator.api_support.library_defaults import libraries  # lint asks for torch alone

    return wanted_of(requirements, libraries())


@cache
def wanted_of(requirements: tuple[str, ...], names: frozenset[str]) -> Mapping[str, Limits]:
    """The limits for each library that a line of requirements, or of guides, asks for by a version."""
    named = re.compile(rf"(?<![\w.-])({_either(names)})(?:\[[\w, -]*\])?{SPECIFIED}", re.IGNORECASE)
    found: dict[str, Limits] = {}
    for line in requirements:
        for match in named.finditer(line.partition("#")[0]):
            found.setdefault(match[1].lower().replace("_", "-"), limits_of(match[2]))
    return found


def limits_hold(conditions: str, limits: Limits) -> Optional[bool]:
    """Whether conditions such as ``>=4.36,<4.51`` hold for what is installed within some limits.

    None where some versions within the limits meet them and others do not.
    """
    pin = next((number for sign, number in limits if sign in PINS), None)
    if pin is not None:
        return in_range(conditions, pin)
    lowest = max((number for sign, number in limits if sign in (">=", ">")), default=())
    highest = min((number for sign, number in limits if sign in ("<=", "<")), default=None)
    sure = True
    for condition in filter(None, (part.strip() for part in conditions.split(","))):
        below, number = condition[0] == "<", as_tuple(condition.lstrip("<>= "))
        if (lowest >= number) if below else (highest is not None and highest <= number):
            return False
        sure = sure and ((highest is not None and highest <= number) if below else lowest >= number)
    return sure or None


def _either(names: Collection[str]) -> str:
    return "|".join(sorted(re.escape(name).replace(r"\-", "[-_]") for name in names))
