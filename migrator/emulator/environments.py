"""Environments of other torch releases for emulated programs: made once, kept in the user's cache folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from packaging.requirements import Requirement

from migrator.emulator.build import cache_folder, locked
from migrator.emulator.installed import EmulatorError, packages_of, version_of
from migrator.language import _

_READY = "npumigrate-made-it"  # a file in those that are complete
_BEHIND = "behind_npumigrate.pth"
_ONE_NUMPY = (2, 6)  # the last torch whose torch_npu may want numpy 1


class Release(Protocol):
    """Versions that belong together, and the Pythons that torch_npu has packages for."""

    @property
    def torch(self) -> str: ...  # noqa: D102
    @property
    def torch_npu(self) -> str: ...  # noqa: D102
    @property
    def torchvision(self) -> str: ...  # noqa: D102
    @property
    def python(self) -> Sequence[str]: ...  # noqa: D102


def python_with(release: Release, say: Callable[[str], None]) -> Path:
    """Return the Python of an environment with a torch and its torch_npu; make it if there is none yet.

    What is installed beside npumigrate is found in it as well, behind the packages of its own.

    Raises EmulatorError.
    """
    if (release.torch, release.torch_npu) == (_plain("torch"), _plain("torch_npu")):
        return Path(sys.executable)
    folder = cache_folder().parent / "environments"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = folder / f"torch-{release.torch}-torch_npu-{release.torch_npu}-python{python}"
    if not (place / _READY).exists():
        if python not in release.python:
            known = ", ".join(release.python)
            said = "torch_npu {release} has packages for Python {known}, not for Python {python}"
            raise EmulatorError(_(said, release=release.torch_npu, known=known, python=python))
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock", "waiting for another process that makes an environment", say):
            if not (place / _READY).exists():
                say(
                    _(
                        "making an environment with torch {torch} (once): {place}",
                        torch=release.torch,
                        place=place,
                    )
                )
                _make(place, release)
    return place / "bin" / "python"


def _plain(name: str) -> str:
    return (version_of(name) or "").partition("+")[0]


def _make(place: Path, release: Release) -> None:
    shutil.rmtree(place, ignore_errors=True)
    uv, python = shutil.which("uv"), str(place / "bin" / "python")
    _run([uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"], str(place))
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    numpy = "numpy<2" if tuple(map(int, release.torch.split(".")[:2])) <= _ONE_NUMPY else "numpy"
    wanted = [f"torch=={release.torch}", f"torch_npu=={release.torch_npu}", numpy, "pyyaml"]
    wanted += [f"torchvision=={release.torchvision}"] if release.torchvision else []
    if _of_cuda(uv, install, place, wanted):
        said = (
            "the package index has torch {torch} only as a CUDA build (gigabytes); set PIP_EXTRA_INDEX_URL "
            "(uv: UV_EXTRA_INDEX_URL) to an index with CPU builds"
        )
        shutil.rmtree(place, ignore_errors=True)
        raise EmulatorError(_(said, torch=release.torch))
    _run(install, *wanted)
    behind = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (packages_of(Path(python)) / _BEHIND).write_text("".join(f"{path}\n" for path in behind))
    (place / _READY).touch()


def _of_cuda(uv: str | None, install: Sequence[str], place: Path, wanted: Sequence[str]) -> bool:
    """Whether the package index has no other build of this torch: on x86_64 PyPI has none."""
    if uv:
        return bool(re.search(r"\bnvidia[-_]", _run([*install, "--dry-run"], *wanted)))
    report = place / "torch.json"  # pip may fetch whole packages to know what they need: ask for torch alone
    _run([*install, "--dry-run", "--no-deps"], "--report", str(report), wanted[0])
    (torch,) = json.loads(report.read_text(encoding="utf-8"))["install"]
    needs = map(Requirement, torch["metadata"].get("requires_dist", ()))
    return any(
        need.name.startswith("nvidia") and (not need.marker or need.marker.evaluate({"extra": ""}))
        for need in needs
    )


def _run(command: Sequence[str], *words: str) -> str:
    """Run a command and return what it says. Raises EmulatorError with its last line where it fails."""
    done = subprocess.run(
        [*command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "rror" in line] or [done.stdout.strip()]
        raise EmulatorError(_("cannot make the environment: {said}", said=lines[-1]))
    return done.stdout
