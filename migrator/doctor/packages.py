"""The installed Python packages, from their metadata: nothing is imported or run."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from migrator.doctor.machine import text_of
from migrator.language import _

NAMES = ("torch", "torch_npu", "torchvision", "torchaudio", "apex")


@dataclass(frozen=True)
class Package:
    """An installed package; ``torch`` is the torch that its metadata requires, empty where it names none."""

    version: str
    torch: str = ""
    for_npu: bool = False  # of apex: it has Ascend's optimizers


@dataclass(frozen=True)
class Python:
    """A Python and its packages, by their names as above; ``name`` is what the user calls it."""

    name: str
    version: str
    packages: dict[str, Package] = field(default_factory=dict)


def running_python() -> Python:
    """The one that runs this program."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Python(sys.executable, version, _packages(sys.path))


def python_at(path: Path) -> Python:
    """The one of an environment: its folder, or the ``python`` in its ``bin``.

    Raises ValueError where there is no site-packages folder.
    """
    prefix = path.parent.parent if path.name.startswith("python") and not path.is_dir() else path
    patterns = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
    folders = [found for pattern in patterns for found in sorted(prefix.glob(pattern))]
    if not folders:
        raise ValueError(
            _("{path} is no Python environment: it has no lib/python3.*/site-packages", path=path)
        )
    folders += [more for folder in folders for more in _added(folder)]
    given = re.search(r"^version\s*=\s*(\S+)", text_of(prefix / "pyvenv.cfg"), re.MULTILINE)
    names = re.findall(r"python(3\.\d+)", f"{path.resolve().name} {folders[0]}")
    version = given[1] if given else names[0] if names else ""
    return Python(str(path), version, _packages([str(folder) for folder in folders]))


_FILES = ("RECORD", "installed-files.txt", "SOURCES.txt")  # which have the names of a package's files


def _packages(folders: list[str]) -> dict[str, Package]:
    found: dict[str, Package] = {}
    for name in NAMES:
        # As the metadata may call it: torch_npu or torch-npu.
        distribution = next(iter(metadata.distributions(name=name, path=folders)), None)
        # Its files may be half removed: then this gives None, and importlib_metadata in its place raises.
        if (
            distribution is None
            or "Version" not in distribution.metadata
            or not distribution.metadata["Version"]
        ):
            continue
        required = " ".join(distribution.requires or ())
        torch = re.search(r"(?<![\w-])torch\s*\(?\s*==\s*(\d+\.\d+\.\d+)", required)
        for_npu = name == "apex" and any(
            "npu_fused" in (distribution.read_text(each) or "") for each in _FILES
        )
        found[name] = Package(distribution.version, torch[1] if torch else "", for_npu)
    return found


def _added(folder: Path) -> list[Path]:
    """The folders that ``.pth`` files add; their lines of code are left alone."""
    lines = (line.strip() for file in sorted(folder.glob("*.pth")) for line in text_of(file).splitlines())
    return [folder / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
