"""Getting wheels of torch_npu and torch from the package index, by pip."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.releases.archive import WheelError

# Every release has wheels for some of these; which one does not matter to what is read of it.
_PYTHONS = ("3.11", "3.12", "3.10", "3.13", "3.9")
_PLATFORMS = {
    "torch_npu": (
        "manylinux_2_28_x86_64",
        "manylinux2014_x86_64",
        "manylinux_2_28_aarch64",
        "manylinux2014_aarch64",
    ),
    # The wheels for macOS hold the same sources and stubs, and no CUDA libraries.
    "torch": ("macosx_11_0_arm64", "macosx_14_0_arm64", "macosx_10_9_x86_64"),
}
_PATIENCE = 1800  # seconds


def fetch(release: str, folder: Path, package: str = "torch_npu") -> Path:
    """Download the wheel of a torch_npu release, or of torch, into a folder, and return its path.

    ``2.12`` is the newest of torch 2.12, ``2.12.0.post2`` exactly that one. pip neither builds nor installs
    anything. Raises WheelError where there is no such release, or no pip.
    """
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?((\.post|rc|a|b)\d+)?", release):
        raise WheelError(f"{release!r} is no torch_npu release, such as 2.12 or 2.12.0.post2")
    wanted = f"{package}=={release}.*" if re.fullmatch(r"\d+\.\d+", release) else f"{package}=={release}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--dest", str(folder)]
    for platform in _PLATFORMS[package]:
        command += ["--platform", platform]
    said = ""
    for python in _PYTHONS:
        try:
            answer = subprocess.run(
                [*command, "--python-version", python, wanted],
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            raise WheelError("pip does not answer: download the wheel and give it with --wheel") from None
        wheels = sorted(folder.glob("*.whl"))
        if not answer.returncode and wheels:
            return wheels[0]
        if "No module named pip" in answer.stderr:
            raise WheelError("this Python has no pip: download the wheel and give it with --wheel")
        errors = [line for line in answer.stderr.splitlines() if line.startswith("ERROR")]
        # Of several errors the first has the reason.
        said = errors[0].partition(": ")[2] if errors else said
    raise WheelError(f"pip finds no wheel of {package} {release}: {said[:300] or 'it gives no reason'}")
