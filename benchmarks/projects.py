"""Real PyTorch projects, pinned, for tests and benchmarks.

Their source archives come from the package index that pip is set up for, are checked
against their hashes and unpacked into a cache folder; nothing in them is run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Project:
    """A source archive: name and version as on the index, its file's name and SHA-256."""

    name: str
    version: str
    archive: str
    sha256: str

    @property
    def folder(self) -> str:
        return self.archive[: -len(".tar.gz")]


PROJECTS = (
    Project(
        "timm",
        "1.0.31",
        "timm-1.0.31.tar.gz",
        "baa0b333339c46d3d6d4965d99b69f5053afed71210e8f433d7ea5ee6a18f0ec",
    ),
    Project(
        "ultralytics",
        "8.4.190",
        "ultralytics-8.4.190.tar.gz",
        "c7a0ebb21d10f1de98682b6a4dc22bc0d1d0634b9398c086bd03b1e5bf40cbc3",
    ),
    Project(
        "megatron-core",
        "0.16.1",
        "megatron_core-0.16.1.tar.gz",
        "86522feacfa5ef384a6ac627e7d88cf4866811aed3bc9b6c2a85cbf15cff91a3",
    ),
    Project(
        "deepspeed",
        "0.19.8",
        "deepspeed-0.19.8.tar.gz",
        "9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af",
    ),
    Project(
        "basicsr",
        "1.4.2",
        "basicsr-1.4.2.tar.gz",
        "b89b595a87ef964cda9913b4d99380ddb6554c965577c0c10cb7b78e31301e87",
    ),
    Project(
        "open_clip_torch",
        "3.3.0",
        "open_clip_torch-3.3.0.tar.gz",
        "904b1a9f909df8281bb3de60ab95491cd2994a509177ea4f9d6292a84fe24d6d",
    ),
)


def cache_folder() -> Path:
    """Where the projects are kept: NPUMIGRATE_PROJECTS, or a folder of the user's cache."""
    chosen = os.environ.get("NPUMIGRATE_PROJECTS")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "npumigrate" / "projects"


def fetch(project: Project) -> Path:
    """The folder of an unpacked project, fetched where it is not there yet.

    Raises LookupError where the index does not have it, ValueError for a wrong hash.
    """
    folder = cache_folder() / project.folder
    if folder.is_dir():
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        archive = _download(project, Path(scratch))
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != project.sha256:
            raise ValueError(f"{project.archive} has the hash {found}, expected {project.sha256}")
        with tarfile.open(archive) as tar:
            unpacked = Path(scratch) / "unpacked"
            _unpack(tar, unpacked)
        if not folder.is_dir():  # another process may have been quicker
            shutil.move(str(unpacked / project.folder), str(folder))
    return folder


def _download(project: Project, folder: Path) -> Path:
    requirement = f"{project.name}=={project.version}"
    command = [sys.executable, "-m", "unearth", requirement, "--no-binary", "--download", str(folder)]
    index = os.environ.get("PIP_INDEX_URL")
    if index:
        command += ["--index-url", index]
    done = subprocess.run(command, capture_output=True, text=True)
    archive = folder / project.archive
    if done.returncode or not archive.is_file():
        raise LookupError(f"{requirement} cannot be fetched: {done.stderr.strip()[-300:]}")
    return archive


def _unpack(tar: tarfile.TarFile, folder: Path) -> None:
    if sys.version_info >= (3, 12):
        tar.extractall(folder, filter="data")
        return
    root = folder.resolve()
    for member in tar.getmembers():
        if not (member.isfile() or member.isdir()):
            continue
        if not str((root / member.name).resolve()).startswith(str(root)):
            raise ValueError(f"{member.name} lies outside of the archive's folder")
        tar.extract(member, root)


if __name__ == "__main__":
    for wanted in PROJECTS:
        print(fetch(wanted))
