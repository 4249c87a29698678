"""CANN and the driver as they are installed, read from the files that their installers leave."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from migrator.api_support.companions import family
from migrator.doctor.machine import DRIVER, ROOTS, TOOLKITS, Machine


@dataclass(frozen=True)
class Installed:
    """A version, its family (V100R001C19) and the families that it calls compatible; empty if not known."""

    version: str = ""
    family: str = ""
    compatible: tuple[str, ...] = ()


def set_env(machine: Machine) -> str:
    """The ``set_env.sh`` to source, as the machine has its path; empty where there is none."""
    given = machine.variables.get("ASCEND_TOOLKIT_HOME", "")
    folders = [given] if given else []
    folders += [f"{root}/{toolkit}" for root in ROOTS for toolkit in TOOLKITS]
    return next((f"{one}/set_env.sh" for one in folders if machine.exists(f"{one}/set_env.sh")), "")


def cann(machine: Machine) -> Installed:
    """The CANN of ASCEND_HOME_PATH, or else the one that would be sourced."""
    script = set_env(machine)
    home = machine.variables.get("ASCEND_HOME_PATH") or (os.path.dirname(script) if script else "")
    if not home:
        return Installed()
    for folder in (home, f"{home}/latest"):
        for place in (folder, *(f"{folder}/{arch}-linux" for arch in ("aarch64", "x86_64", "arm64"))):
            for package in ("toolkit", "nnae", "nnrt"):
                found = machine.properties(f"{place}/ascend_{package}_install.info")
                if found.get("version"):
                    return _installed(found["version"], found)
    return Installed()


def driver(machine: Machine) -> Installed:
    """The driver."""
    found = machine.properties(f"{DRIVER}/version.info")
    return _installed(found.get("package_version") or found.get("version", ""), found)


def _installed(version: str, found: dict[str, str]) -> Installed:
    # [V100R001C13,V100R001C19],[V100R001C30]: a range and a single one.
    ranges = re.findall(r"\[([^\[\]]*)\]", found.get("compatible_version", ""))
    return Installed(
        version,
        family(found.get("innerversion", "")),
        tuple("-".join(part.strip() for part in one.split(",")) for one in ranges),
    )
