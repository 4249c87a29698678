"""The installed Python packages, read from their metadata, and which of them do not belong together."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from migrator.api_support.companions import cann_order, names, of_torch, of_torch_npu, release_for
from migrator.doctor.machine import Installed, text_of
from migrator.language import _
from migrator.launch.fault_texts import Fault, fault

_NAMES = ("torch", "torch_npu", "torchvision", "torchaudio", "apex")
_FILES = ("RECORD", "installed-files.txt", "SOURCES.txt")  # which have the names of a package's files


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
    given = re.search(r"^version\s*=\s*(\S+)", text_of(prefix / "pyvenv.cfg"), re.MULTILINE)
    minors = re.findall(r"python(3\.\d+)", f"{path.resolve().name} {folders[0]}")
    for folder in [*folders]:  # .pth files add more; their lines of code are left alone
        texts = (text_of(file) for file in sorted(folder.glob("*.pth")))
        lines = (line.strip() for text in texts for line in text.splitlines())
        code = ("#", "import ", "import\t")
        folders += [folder / line for line in lines if line and not line.startswith(code)]
    version = given[1] if given else minors[0] if minors else ""
    return Python(str(path), version, _packages([str(folder) for folder in folders]))


def _packages(folders: list[str]) -> dict[str, Package]:
    found: dict[str, Package] = {}
    for name in _NAMES:
        # As the metadata may call it: torch_npu or torch-npu.
        distribution = next(iter(metadata.distributions(name=name, path=folders)), None)
        # Its files may be half removed: then "Version" is not there, or empty.
        has_version = distribution is not None and "Version" in distribution.metadata
        if distribution is None or not has_version or not distribution.metadata["Version"]:
            continue
        required = " ".join(distribution.requires or ())
        torch = re.search(r"(?<![\w-])torch\s*\(?\s*==\s*(\d+\.\d+\.\d+)", required)
        files = (distribution.read_text(each) or "" for each in _FILES)
        for_npu = name == "apex" and any("npu_fused" in text for text in files)
        found[name] = Package(distribution.version, torch[1] if torch else "", for_npu)
    return found


def package_faults(python: Python, cann: Installed) -> Iterator[Fault]:
    """Packages that are missing, or made for another torch or Python; what to install suits ``cann``."""
    torch, torch_npu = python.packages.get("torch"), python.packages.get("torch_npu")
    if torch is None or torch_npu is None:
        missing = "torch" if torch is None else "torch_npu"
        release = release_for(torch.version, cann.version) if torch else ""
        what = f"torch_npu=={release}" if release else _("torch_npu, with the torch that it is for")
        yield fault("torch-missing", package=missing, python=python.name, command=f"pip install {what}")
    if torch is None:
        return
    base = _base(torch.version)
    if torch_npu is not None:
        fits = of_torch_npu(torch_npu.version)
        wanted = torch_npu.torch or (fits.torch if fits else _base(torch_npu.version))
        if wanted != base:
            command, better = f"pip install torch=={wanted}", release_for(base, cann.version)
            if better:
                command += _(", or torch_npu=={better} for torch {base}", better=better, base=base)
            values = {"torch_npu": torch_npu.version, "wanted": wanted, "torch": base, "command": command}
            yield fault("torch-pair", **values)
        if "+cu" in torch.version:
            yield fault("torch-for-cuda", torch=torch.version, base=base)
        minor = ".".join(python.version.split(".")[:2])
        if fits is not None and fits.torch == base and fits.python and minor not in fits.python:
            values = {"python": python.version, "torch": base, "wanted": ", ".join(fits.python)}
            yield fault("python-pair", best=fits.python[-1], **values)
    known = of_torch(base)
    for name in ("torchvision", "torchaudio"):
        package = python.packages.get(name)
        if package is not None and package.torch and package.torch != base:  # compiled for another torch
            fitting = getattr(known[0], name) if known else ""
            command = f"pip install {name}=={fitting}"
            if not fitting:
                command = _("install the {name} for torch {torch}", name=name, torch=base)
            values = {"package": name, "version": package.version, "wanted": package.torch, "torch": base}
            yield fault("companion-pair", command=command, **values)
    apex = python.packages.get("apex")
    if apex is not None and "+ascend" not in apex.version and not apex.for_npu:
        yield fault("apex-for-cuda", version=apex.version)


def release_faults(python: Python, cann: Installed, driver: Installed) -> Iterator[Fault]:
    """CANN for another torch_npu, and a driver for another CANN, by ``releases.csv`` and their metadata."""
    torch_npu = python.packages.get("torch_npu")
    release = of_torch_npu(torch_npu.version) if torch_npu else None
    if release is not None and release.cann and cann.version:
        have, wanted = cann_order(cann.version), cann_order(release.cann)
        if have is not None and wanted is not None and have != wanted:
            others = " or ".join(
                one.torch_npu for one in of_torch(release.torch) if cann_order(one.cann) == have
            )
            other = _("or torch_npu {others}", others=others) if others else ""
            other = other or _("or a torch_npu for the CANN that is there")
            values = {"cann": cann.version, "torch_npu": release.torch_npu, "wanted": release.cann}
            yield fault("cann-older" if have < wanted else "cann-newer", or_release=other, **values)
    if cann.family and driver.family and cann.family != driver.family and cann.compatible:
        if not names(cann.compatible, driver.family) and not names(driver.compatible, cann.family):
            values = {"driver": driver.version, "family": driver.family, "cann": cann.version}
            yield fault("driver-pair", wanted=", ".join(cann.compatible), **values)


def _base(version: str) -> str:
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version
