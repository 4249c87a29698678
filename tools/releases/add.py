"""Adding releases of torch_npu, torch and torchvision to the tables, from their wheels."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from migrator.api_support import tables
from tools.releases import check, npu_names, registered, writing
from tools.releases.archive import WheelError
from tools.releases.check import is_release, order_of
from tools.releases.torch_table import PACKAGES, set_releases
from tools.releases.wheels import Wheel

_PREFIX = ".building-"


def add(wheels: Sequence[Wheel], start: Path, target: Path) -> list[Path]:
    """Add wheels to the tables in ``start`` and put the result into ``target``, which may be the same folder.

    A wheel takes the place of what the tables hold of another one for the same torch version. All is worked
    out and checked in a folder of its own first; then each changed table is replaced as a whole, versions.csv
    last. Returns the tables that changed. Raises OSError where ``target`` cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    with _locked(target), tempfile.TemporaryDirectory(prefix=_PREFIX, dir=target) as folder:
        work = Path(folder) / "api_db"
        shutil.copytree(start, work, ignore=shutil.ignore_patterns(f"{_PREFIX}*"))
        _add_all(wheels, work)
        problems = check.problems(work)
        if problems:
            raise WheelError(f"the tables would not hold together: {problems[0]}")
        return _replace(work, target)


def _add_all(wheels: Sequence[Wheel], api_db: Path) -> None:
    # torch_npu first: it makes the row of a version that torch's switches go into.
    for wheel in sorted(wheels, key=lambda wheel: wheel.package, reverse=True):
        if wheel.package in ("torch", "torch_npu"):
            _set_version(wheel, api_db)
        if wheel.package == "torch_npu" and is_release(wheel.release):
            _set_release(wheel, api_db)
    for package in PACKAGES:
        read = {
            wheel.torch_version: (wheel.release, wheel.public)
            for wheel in wheels
            if wheel.package == package and wheel.public
        }
        if read:
            set_releases(api_db, package, read)
    natives = {wheel.torch_version: wheel.natives for wheel in wheels if wheel.natives}
    if natives:
        registered.set_natives(api_db, natives)
    known = writing.order(api_db)
    for wheel in wheels:
        if wheel.torch_version in known and wheel.modules:
            registered.set_names(wheel, api_db)
        if wheel.operators:
            registered.set_kernels(api_db, wheel.torch_version, wheel.operators.aten)
            registered.set_own(api_db, wheel.torch_version, wheel.operators.custom, wheel.own_names)
    npu_names.derive(api_db)


def _set_version(wheel: Wheel, api_db: Path) -> None:
    versions = writing.records("versions", api_db)
    row = next((row for row in versions if row["torch"] == wheel.torch_version), None)
    if row is None:
        if wheel.package == "torch":
            return  # its names are known, and that there is no torch_npu for it
        row = _new_row(wheel.torch_version, versions)
        versions.append(row)
        versions.sort(key=lambda row: tables.as_tuple(row["torch"]))
    row[registered.wheel_column(wheel.package)] = wheel.release
    row.update(wheel.switches)
    sources = [source for source in row["source"].split("; ") if source]
    if wheel.package == "torch":
        others = (s for s in sources if s != "torch wheel" and not s.startswith("as torch"))
        sources = ["torch wheel", *others]
    else:
        row["torch_npu"] = wheel.release
        row["evidence"] = " ".join(sorted({*row["evidence"].split(), "wheel"} - {"interpolated"}))
        if "torch_npu wheel" not in sources:
            sources.insert(int(sources[:1] == ["torch wheel"]), "torch_npu wheel")
    row["source"] = "; ".join(sources)
    writing.write_in(api_db, "versions", [list(row.values()) for row in versions])


def _set_release(wheel: Wheel, api_db: Path) -> None:
    """A row in releases.csv: what goes with its torch is known from others for it, the rest is not."""
    rows = writing.records("releases", api_db)
    if any(row["torch_npu"] == wheel.release for row in rows):
        return
    row = dict.fromkeys(writing.COLUMNS["releases"].split(), "")
    row.update(torch_npu=wheel.release, torch=wheel.torch_version, source="torch_npu wheel")
    like = next((other for other in rows if other["torch"] == wheel.torch_version), None)
    if like is not None:
        row.update({column: like[column] for column in ("python", "torchvision", "torchaudio")})
        row["source"] += f"; as torch_npu {like['torch_npu']}"
    rows = sorted([*rows, row], key=lambda row: order_of(row["torch_npu"]))
    writing.write_as_they_are(api_db / "releases.csv", list(row), [list(row.values()) for row in rows])


def _new_row(version: str, versions: Sequence[dict[str, str]]) -> dict[str, str]:
    """A row that behaves as the nearest older torch of which the wheel was read, until its own is."""
    read = [row for row in versions if row["torch_wheel"]]
    older = [row for row in read if tables.as_tuple(row["torch"]) < tables.as_tuple(version)]
    like = older[-1] if older else read[0]
    empty = dict.fromkeys(("evidence", "torch_wheel", "npu_wheel"), "")
    return {**like, **empty, "torch": version, "torch_npu": version, "source": f"as torch {like['torch']}"}


def _replace(work: Path, target: Path) -> list[Path]:
    changed = []
    for path in sorted(work.rglob("*.csv"), key=lambda path: (path.name == "versions.csv", path)):
        place = target / path.relative_to(work)
        if place.is_file() and place.read_bytes() == path.read_bytes():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, place)
        changed.append(place)
    return changed


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One build at a time for a folder; the system frees the lock however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    number = os.open(target, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
