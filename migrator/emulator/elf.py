"""What the shared libraries of torch_npu want from CANN: libraries and symbols, by nm and readelf."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from migrator.emulator.installed import EmulatorError
from migrator.language import _

# Opened by torch_npu at run time, without being linked.
_OPENED = ("libascend_hal.so", "libhcomm.so", "libmspti.so", "libmsprofiler.so", "libopapi.so")
_SYSTEM_LIBRARY = re.compile(r"(ld-linux|libc\.|libdl\.|libgcc|libm\.|libpthread|librt\.|libstdc\+\+)")
# Python's, torch's, the compiler's.
_NOT_CANN = re.compile(r"_?Py|_ZN?K?3c10|__|_ITM|_Unwind")
_DATA_OF_A_CLASS = ("_ZTI", "_ZTS", "_ZTV")


@dataclass(frozen=True)
class Wanted:
    """Sonames of libraries, names of functions and of constant data."""

    libraries: tuple[str, ...]
    functions: tuple[str, ...]
    data: tuple[str, ...]


def wanted_from_cann(torch_npu: Path, torch: Path) -> Wanted:
    """Return what the libraries of the two packages want and none of them, nor the system, has."""
    users = [*torch_npu.glob("_C*.so"), *(lib for lib in torch_npu.glob("lib/*.so") if "atb" not in lib.name)]
    others = [*torch.glob("lib/*.so*"), *torch_npu.parent.glob("torch_npu.libs/*")]
    have = {path.name for path in [*users, *others]}
    needed = {name for path in users for name in _needed(path)}
    libraries = {name for name in needed if name not in have and not _SYSTEM_LIBRARY.match(name)}

    defined = {name for path in [*users, *others] for name, _ in _symbols(path, "--defined-only")}
    system = ctypes.CDLL(None)
    missing = {
        name
        for path in users
        for name, kind in _symbols(path, "--undefined-only")
        # A name with a version is the system's; a weak one may stay undefined.
        if "@" not in name and kind == "U" and name not in defined and not _NOT_CANN.match(name)
    }
    missing = {name for name in missing if name.startswith(("acl", "Hccl")) or not hasattr(system, name)}
    data = {name for name in missing if name.startswith(_DATA_OF_A_CLASS)}
    return Wanted(tuple(sorted(libraries | set(_OPENED))), tuple(sorted(missing - data)), tuple(sorted(data)))


def defined_functions(objects: Iterable[Path]) -> set[str]:
    """Return the global symbols that the object files define."""
    return {name for path in objects for name, _ in _symbols(path, "--defined-only", dynamic=False)}


def _symbols(path: Path, which: str, dynamic: bool = True) -> list[tuple[str, str]]:
    text = _run("nm", *(("-D",) if dynamic else ()), which, str(path))
    rows = (line.split() for line in text.splitlines())
    return [(row[-1], row[-2]) for row in rows if len(row) >= 2]


def _needed(path: Path) -> list[str]:
    return re.findall(r"NEEDED[^\[\n]*\[([^\]\n]*)\]", _run("readelf", "-d", str(path)))


def _run(tool: str, *arguments: str) -> str:
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EmulatorError(_("{tool} is missing: install the package binutils", tool=tool)) from None
    return done.stdout
