"""What the emulator needs, and what of it this Python environment has."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from migrator.data_folders import data_folder
from migrator.language import _
from migrator.this_copy import install_command

COMPILER_PACKAGES = "g++ (Debian, Ubuntu), gcc-c++ (Fedora, openEuler), gcc (Arch), base-devel (others)"
_COMPILERS = ("g++", "c++", "clang++")
_MACHINES = ("x86_64", "aarch64")
_PYTHON = (3, 10)
# Both register the same keys of the allocator: "Duplicated key 'pinned_reserve_segment_size_mb' found".
_ABORTS_BESIDE_CUDA = (2, 14)


class Tried(NamedTuple):
    """What was run on the emulator, with which versions and when: a row of ``emulated.csv``."""

    torch: str
    torch_npu: str
    python: str
    machine: str
    build: str
    date: str
    ran: str


@cache
def tried() -> tuple[Tried, ...]:
    """What was run on the emulator, oldest torch first. Raises FileNotFoundError without the table."""
    lines = (data_folder("api_db") / "emulated.csv").read_text(encoding="utf-8").splitlines()
    return tuple(Tried(*line.split(",")) for line in lines[1:])


def supported() -> list[str]:
    """The releases of torch and torch_npu that were run, by their first two numbers, newest first."""
    return list(dict.fromkeys(_release(row.torch) for row in reversed(tried())))


class EmulatorError(Exception):
    """The emulator cannot run here; the message is one line that says what to do."""


@dataclass(frozen=True)
class Installed:
    """The parts that a build of the emulator depends on."""

    torch: str
    torch_npu: str
    torch_folder: Path
    torch_npu_folder: Path
    compiler: tuple[str, ...]
    compiler_version: str
    python: Path = Path(sys.executable)


def packages_of(python: Path) -> Path:
    """The folder of packages of an environment of this Python's version."""
    base = str(python.parent.parent)
    return Path(sysconfig.get_path("purelib", "posix_prefix", {"base": base, "platbase": base}))


def _distribution(name: str, python: Path | None) -> metadata.Distribution | None:
    where: dict[str, Any] = {} if python is None else {"path": [str(packages_of(python))]}
    return next(iter(metadata.distributions(name=name, **where)), None)


def version_of(distribution: str, python: Path | None = None) -> str | None:
    """Return the version of an installed distribution, here or beside a Python, without importing it."""
    found = _distribution(distribution, python)
    return found.version if found else None


def platform_trouble() -> str | None:
    """Say why the emulator cannot run on this system, or with this Python, or None."""
    if not sys.platform.startswith("linux"):
        return _(
            "the emulator runs on Linux, not on {system}: torch_npu has no package for it",
            system=platform.system(),
        )
    if platform.machine() not in _MACHINES:
        return _(
            "torch_npu has no package for {machine}; supported: {machines}",
            machine=platform.machine(),
            machines=_(" and ").join(_MACHINES),
        )
    if sys.version_info < _PYTHON:
        has, needs = platform.python_version(), ".".join(map(str, _PYTHON))
        return _(
            "torch 2.13 has no package for Python {has}: use Python {needs} or newer", has=has, needs=needs
        )
    return None


def is_supported(torch: str | None, torch_npu: str | None) -> bool:
    """Return whether the emulator runs with these two."""
    if torch is None or torch_npu is None:
        return False
    return _release(torch) == _release(torch_npu) and _release(torch) in supported()


def pair_trouble(torch: str | None, torch_npu: str | None) -> str | None:
    """Say what is missing or does not fit together, or None."""
    missing = [name for name, version in (("torch", torch), ("torch_npu", torch_npu)) if version is None]
    if torch is None or torch_npu is None:
        return _(
            "{missing} not installed beside {executable}: {install}",
            missing=_(" and ").join(missing),
            executable=sys.executable,
            install=install_command("emulator"),
        )
    if not is_supported(torch, torch_npu):
        known = ", ".join(_("torch {one}.* with torch_npu {one}.*", one=one) for one in supported())
        return _(
            "torch {torch} with torch_npu {torch_npu} is not supported; supported: {known} ({install})",
            torch=torch,
            torch_npu=torch_npu,
            known=known,
            install=install_command("emulator"),
        )
    return None


def find_compiler() -> tuple[str, ...] | None:
    """Return the C++ compiler's command: $CXX, or the first of the usual names."""
    named = os.environ.get("CXX", "").split()
    if named and shutil.which(named[0]):
        return tuple(named)
    return next(((name,) for name in _COMPILERS if shutil.which(name)), None)


def compiler_trouble(compiler: tuple[str, ...] | None) -> str | None:
    """Say which package is missing, or None."""
    if compiler is not None:
        return None
    return _(
        "no C++ compiler: install {compiler_packages}, or set CXX",
        compiler_packages=COMPILER_PACKAGES,
    )


def troubles(torch: str | None, torch_npu: str | None, compiler: tuple[str, ...] | None) -> list[str]:
    """Why the emulator cannot run with these here; empty where it can."""
    found = (platform_trouble(), pair_trouble(torch, torch_npu), compiler_trouble(compiler))
    return [trouble for trouble in found if trouble]


def look(python: Path | None = None) -> Installed:
    """Return what is installed, here or beside another Python.

    Raises EmulatorError with the first thing that is missing.
    """
    torch, torch_npu = version_of("torch", python), version_of("torch_npu", python)
    compiler = find_compiler()
    missing = troubles(torch, torch_npu, compiler)
    if missing or torch is None or torch_npu is None or compiler is None:
        raise EmulatorError(missing[0])
    folder = _folder("torch", python)
    if (
        tuple(map(int, _release(torch).split("."))) >= _ABORTS_BESIDE_CUDA
        and (folder / "lib" / "libtorch_cuda.so").exists()
    ):
        why = "torch {torch} is a CUDA build: torch_npu {torch_npu} aborts beside it; install a CPU build"
        raise EmulatorError(_(why, torch=torch, torch_npu=torch_npu))
    said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return Installed(
        torch,
        torch_npu,
        folder,
        _folder("torch_npu", python),
        compiler,
        said.stdout.partition("\n")[0] or " ".join(compiler),
        python or Path(sys.executable),
    )


def _release(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _folder(distribution: str, python: Path | None) -> Path:
    """Find the folder of a package without importing it: that takes a second, and loads torch_npu."""
    found = _distribution(distribution, python)
    place = Path(str(found.locate_file(distribution))) if found else Path(distribution)
    if not place.is_dir():
        raise EmulatorError(
            _("{distribution} is installed, but {place} is missing", distribution=distribution, place=place)
        )
    return place
