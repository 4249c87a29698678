"""Which releases belong together: torch_npu, torch, Python, torchvision, CANN … (``releases.csv``).

What is built on torch_npu is in ``ecosystem.csv``, the driver and firmware of each CANN in ``drivers.csv``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from migrator.api_support import tables
from migrator.light import Frozen

_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)(?:\.?(rc\d+|post\d+))?(?:\+.*)?\Z", re.IGNORECASE)
_CANN = re.compile(r"(\d+)\.(\d+)\.(?:(\d+)|RC(\d+))(?:[.-](.+))?\Z", re.IGNORECASE)


class ReleaseSet(Frozen):
    """A release of torch_npu and what belongs to it; what is not known is empty.

    ``driver`` has the driver's families that CANN names as compatible, such as V100R001C19, or a range of
    them (V100R001C15-V100R001C18): a driver's is the beginning of the Innerversion in its version.info.
    """

    torch_npu: str
    torch: str
    python: tuple[str, ...]
    torchvision: str
    torchaudio: str
    cann: str
    driver: tuple[str, ...]
    apex: str
    source: str


class Companion(NamedTuple):
    """A release of a package and what it goes with; empty is what does not matter or is not known.

    ``needs``: other packages with their versions, as pip writes them; ``indexes``: more of them for pip.
    """

    package: str
    version: str
    torch: tuple[str, ...]
    torch_npu: tuple[str, ...]
    cann: tuple[str, ...]
    python: tuple[str, ...]
    needs: tuple[str, ...]
    indexes: tuple[str, ...]
    image: str
    source: str

    @property
    def needed(self) -> dict[str, str]:
        """The versions of what it needs, by name."""
        return dict(need.split("==", 1) for need in self.needs)

    def goes_with(self, release: ReleaseSet) -> bool:
        """Whether a release of torch_npu, with its torch, is one of those that it goes with."""
        return release.torch in (self.torch or (release.torch,)) and (
            release.torch_npu in (self.torch_npu or (release.torch_npu,))
        )


@cache
def companions() -> tuple[Companion, ...]:
    """Every known release of what is built on torch_npu. Raises FileNotFoundError without the table."""
    found = []
    for package, version, *cells, image, source in tables.rows("ecosystem"):
        torch, npu, cann, python, needs, indexes = (tuple(cell.split()) for cell in cells)
        found.append(Companion(package, version, torch, npu, cann, python, needs, indexes, image, source))
    return tuple(found)


@cache
def drivers() -> dict[str, tuple[str, ...]]:
    """By CANN: the Ascend HDK (driver and firmware) that belongs to it, then those that it works with."""
    return {cann: (hdk, *works.split()) for cann, hdk, works, _ in tables.rows("drivers")}


@cache
def release_sets() -> tuple[ReleaseSet, ...]:
    """Every known release of torch_npu, oldest first. Raises FileNotFoundError where the table is missing."""
    return tuple(
        ReleaseSet(npu, torch, tuple(python.split()), vision, audio, cann, tuple(driver.split()), *rest)
        for npu, torch, python, vision, audio, cann, driver, *rest in tables.rows("releases")
    )


def of_torch_npu(version: str) -> ReleaseSet | None:
    """What belongs to an installed torch_npu: ``2.7.1.post2``, ``2.1.0rc1``, ``2.6.0+local``."""
    match = _RELEASE.match(version)
    if match is None:
        return None
    name = match[1] + (match[2] or "").lower().replace("post", ".post")
    return next((one for one in release_sets() if one.torch_npu == name), None)


def of_torch(version: str) -> tuple[ReleaseSet, ...]:
    """The releases of torch_npu for a torch version: ``2.6.0+cpu``, ``2.6``; none where there is none."""
    match = re.match(r"v?(\d+\.\d+)(\.\d+)?", version)
    if match is None:
        return ()
    wanted = match[1] + (match[2] or "")
    return tuple(one for one in release_sets() if one.torch == wanted or one.torch.startswith(wanted + "."))


def recommended(torch: str, cann: str = "") -> ReleaseSet | None:
    """The release of torch_npu for a torch: the newest of this CANN, or whose CANN is known, or the newest.

    None where none is known.
    """
    known = [one for one in of_torch(torch)[::-1] if "rc" not in one.torch_npu]
    same = [one for one in known if cann_order(one.cann) == cann_order(cann) is not None]
    return next((one for one in [*same, *(one for one in known if one.cann), *known]), None)


def release_for(torch: str, cann: str) -> str:
    """The name of that release; empty where none is known."""
    release = recommended(torch, cann)
    return release.torch_npu if release else ""


def cann_order(version: str) -> tuple[int, int, int, int] | None:
    """What sorts versions of CANN: ``8.2.RC1`` is before ``8.2.0``. None for what is not a version."""
    match = _CANN.match(version.strip())
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0), int(match[4]) if match[4] else 99


def order(version: str) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """What sorts versions of packages, CANN and drivers: 2.1.X, 2.1.0rc1, 2.1, 2.1.0.post4."""
    first = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in first[0].split(".")] if first else []
    rest = version[first.end() :].lower() if first else version
    later = tuple(map(int, re.findall(r"\d+", rest)))
    return (
        tuple((*numbers, 0, 0, 0)[: max(3, len(numbers))]),
        -1 if "rc" in rest or ".x" in rest else 0,
        later,
    )


def family(innerversion: str) -> str:
    """The family of an Innerversion: V100R001C19 of V100R001C19SPC001B124; empty for other words."""
    match = re.match(r"V\d+R\d+C\d+", innerversion.strip())
    return match[0] if match else ""


def names(families: tuple[str, ...], wanted: str) -> bool:
    """Whether a list of families, or of ranges of them, has a family."""
    ranges = (one.partition("-") for one in families)
    return any(first <= wanted <= (last or first) for first, _, last in ranges)
