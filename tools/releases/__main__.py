"""Add releases of torch_npu, torch, torchvision and torchaudio to the tables, from their wheels.

    python -m tools.releases --version 2.15
    python -m tools.releases --wheel FILE …

A wheel is read as an archive: nothing in it is run or unpacked. The kernels, own APIs and names of a
torch_npu, and the names and parameters of a torch or torchvision, take the place of those of another
release for the same torch version. Exit status: 0 done; 2 nothing was done, one line says why.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from migrator.api_support import tables
from tools.releases.add import add
from tools.releases.archive import WheelError
from tools.releases.fetch import fetch
from tools.releases.wheels import Wheel, read_wheel


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Read the wheels, write the tables, and say what was read and changed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.releases",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--wheel", type=Path, metavar="FILE", action="append", default=[])
    parser.add_argument("--version", metavar="RELEASE", action="append", default=[], help="fetched with pip")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write there, not into the tables in use")
    options = parser.parse_args(arguments)
    if not options.wheel and not options.version:
        parser.error("give --wheel FILE or --version RELEASE")
    try:
        _build(options.wheel, options.version, options.out)
    except (ValueError, FileNotFoundError) as error:  # WheelError is a ValueError
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename or 'the tables'}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _build(paths: Sequence[Path], versions: Sequence[str], out: Optional[Path]) -> None:
    start = out if out and (out / "versions.csv").is_file() else tables.in_force()
    if out and start != out and out.exists() and any(out.iterdir()):
        raise ValueError(f"--out: {out} holds other files than tables")
    with tempfile.TemporaryDirectory(prefix="npumigrate-") as folder:
        wheels = [read_wheel(path) for path in paths]
        for number, release in enumerate(versions):
            print(f"fetching torch_npu {release}", file=sys.stderr)
            place = Path(folder) / str(number)
            place.mkdir()
            wheels.append(read_wheel(fetch(release, place)))
            wheels += _torch_of(wheels[-1].torch_version, place / "torch")
    target = out or tables.in_force()
    changed = add(wheels, start, target)
    for read in wheels:
        about = f"{sum(map(len, read.modules.values()))} names"
        if read.operators:
            aten, custom = map(len, read.operators)
            about += f", {aten} kernels, {custom} operators of its own"
        if read.public:
            about = f"{len(read.public.facts)} names, for torch {read.torch_version}"
        print(f"{read.package} {read.release}: {about}")
    names = ", ".join(path.relative_to(target).as_posix() for path in changed)
    print(f"changed in {target}: {names}" if changed else f"{target} already holds all of that")
    if out:
        print(f"to use these tables, set {tables.VARIABLE}={out}")


def _torch_of(version: str, place: Path) -> list[Wheel]:
    """torch's own wheel for a torch_npu that was fetched, where there is a small one."""
    print(f"fetching torch {version}, for its names", file=sys.stderr)
    place.mkdir()
    try:
        return [read_wheel(fetch(version, place, "torch"))]
    except WheelError as error:
        print(f"{error}; give torch's wheel with --wheel", file=sys.stderr)
        return []


if __name__ == "__main__":
    sys.exit(main())
