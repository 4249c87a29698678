"""Faults of releases that do not belong together, by ``releases.csv`` and by their own metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.api_support.companions import (
    ReleaseSet,
    cann_order,
    names,
    of_torch,
    of_torch_npu,
    release_for,
)
from migrator.doctor.cann import Installed
from migrator.doctor.fault import Fault, fault
from migrator.doctor.packages import Package, Python
from migrator.language import _


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
        yield from _npu_pair(base, torch_npu, fits, release_for(base, cann.version))
        if "+cu" in torch.version:
            yield fault("torch-for-cuda", torch=torch.version, base=base)
        if fits is not None and fits.torch == base:
            yield from _python_pair(python.version, fits)
    known = of_torch(base)
    for name in ("torchvision", "torchaudio"):
        package = python.packages.get(name)
        if package is not None:
            yield from _companion(name, package, base, getattr(known[0], name) if known else "")
    apex = python.packages.get("apex")
    if apex is not None and "+ascend" not in apex.version and not apex.for_npu:
        yield fault("apex-for-cuda", version=apex.version)


def cann_faults(python: Python, cann: Installed, driver: Installed) -> Iterator[Fault]:
    """CANN for another torch_npu, and a driver for another CANN."""
    torch_npu = python.packages.get("torch_npu")
    release = of_torch_npu(torch_npu.version) if torch_npu else None
    if release is not None and release.cann and cann.version:
        have, wanted = cann_order(cann.version), cann_order(release.cann)
        if have is not None and wanted is not None and have != wanted:
            others = [one.torch_npu for one in of_torch(release.torch) if cann_order(one.cann) == have]
            yield fault(
                "cann-older" if have < wanted else "cann-newer",
                cann=cann.version,
                torch_npu=release.torch_npu,
                wanted=release.cann,
                or_release=_("or torch_npu {others}", others=" or ".join(others))
                if others
                else _("or a torch_npu for the CANN that is there"),
            )
    if cann.family and driver.family and cann.family != driver.family and cann.compatible:
        if not names(cann.compatible, driver.family) and not names(driver.compatible, cann.family):
            yield fault(
                "driver-pair",
                driver=driver.version,
                family=driver.family,
                cann=cann.version,
                wanted=", ".join(cann.compatible),
            )


def _npu_pair(base: str, torch_npu: Package, known: ReleaseSet | None, better: str) -> Iterator[Fault]:
    wanted = torch_npu.torch or (known.torch if known else _base(torch_npu.version))
    if wanted != base:
        command = f"pip install torch=={wanted}"
        if better:
            command += _(", or torch_npu=={better} for torch {base}", better=better, base=base)
        yield fault("torch-pair", torch_npu=torch_npu.version, wanted=wanted, torch=base, command=command)


def _python_pair(version: str, release: ReleaseSet) -> Iterator[Fault]:
    minor = ".".join(version.split(".")[:2])
    if release.python and minor not in release.python:
        yield fault(
            "python-pair",
            python=version,
            torch=release.torch,
            wanted=", ".join(release.python),
            best=release.python[-1],
        )


def _companion(name: str, package: Package, torch: str, known: str) -> Iterator[Fault]:
    """A package that is compiled for one torch: its metadata names it. ``known`` is the one that fits."""
    if package.torch and package.torch != torch:
        command = f"pip install {name}=={known}"
        if not known:
            command = _("install the {name} for torch {torch}", name=name, torch=torch)
        yield fault(
            "companion-pair",
            package=name,
            version=package.version,
            wanted=package.torch,
            torch=torch,
            command=command,
        )


def _base(version: str) -> str:
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version
