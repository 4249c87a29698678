"""The machine that is looked at: its files below a root, its variables, its user."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# Where CANN is installed by default, as root and as another user; the second is the name from CANN 8.5 on.
ROOTS = ("/usr/local/Ascend", "/opt/Ascend", "~/Ascend")
TOOLKITS = ("ascend-toolkit", "cann")
DRIVER = "/usr/local/Ascend/driver"


@dataclass(frozen=True)
class User:
    """Who runs the programs: the name, and the numbers of the user and of the groups of this process."""

    name: str
    uid: int
    groups: frozenset[int]


@dataclass(frozen=True)
class Machine:
    """A machine; ``root`` is the folder in which its ``/`` lies."""

    root: Path
    variables: Mapping[str, str]
    user: User

    @property
    def emulated(self) -> int | None:
        """How many NPUs the emulator shows, or None."""
        if not self.variables.get("NPUMIGRATE_EMULATOR"):
            return None
        return int(self.variables.get("NPUMIGRATE_EMULATOR_DEVICES", "8"))

    def path(self, name: str) -> Path:
        """Where a file of the machine lies; ``name`` is as the machine has it, also with ``~/``."""
        if name.startswith("~/"):
            name = self.variables.get("HOME", "/root") + name[1:]
        return Path(name) if self.root == Path("/") else self.root / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder, as far as the user can see."""
        return os.path.exists(self.path(name))

    def text(self, name: str) -> str:
        """What is in a file; empty where it is not there or cannot be read."""
        return text_of(self.path(name))

    def properties(self, name: str) -> dict[str, str]:
        """The ``name=value`` lines of a file, by their names in small letters."""
        pairs = (line.partition("=") for line in self.text(name).splitlines())
        return {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}

    def is_ours(self, name: str) -> bool:
        """Whether the user may read and write a file, by its owner, group and mode."""
        status = self.path(name).stat()
        if self.user.uid == 0:
            return True
        if status.st_uid == self.user.uid:
            shift = 6
        else:
            shift = 3 if status.st_gid in self.user.groups else 0
        return (status.st_mode >> shift) & 6 == 6

    def group(self, number: int) -> tuple[str, frozenset[str]]:
        """The name and the members of a group, as ``/etc/group`` has them; the number where it has none."""
        for line in self.text("/etc/group").splitlines():
            name, _, gid, members, *_ = [*line.split(":"), "", "", ""]
            if gid == str(number):
                return name, frozenset(members.split(","))
        return str(number), frozenset()

    def library_folders(self) -> list[str]:
        """The folders of LD_LIBRARY_PATH."""
        return [folder for folder in self.variables.get("LD_LIBRARY_PATH", "").split(":") if folder]

    def npus(self) -> list[int]:
        """The numbers of the NPUs that have a device file, or of the emulated ones."""
        if self.emulated is not None:
            return list(range(self.emulated))
        names = (re.fullmatch(r"davinci(\d+)", name) for name in _names(self.path("/dev")))
        return sorted(int(match[1]) for match in names if match)

    def cards(self) -> list[str]:
        """The names of the network cards."""
        return sorted(_names(self.path("/sys/class/net")))

    def addresses(self) -> set[str]:
        """The machine's own addresses, as the kernel lists them."""
        return {*self._ipv4(), *self._ipv6()}

    def _ipv4(self) -> Iterator[str]:
        address = ""
        for line in self.text("/proc/net/fib_trie").splitlines():
            leaf = re.match(r"\s*\|--\s+(\S+)", line)
            address = leaf[1] if leaf else address
            if line.strip() == "/32 host LOCAL":
                yield address

    def _ipv6(self) -> Iterator[str]:
        for line in self.text("/proc/net/if_inet6").splitlines():
            digits = line.split(" ")[0]
            if re.fullmatch(r"[0-9a-f]{32}", digits):
                yield str(ipaddress.IPv6Address(int(digits, 16)))


def this_machine(root: Path) -> Machine:
    """The machine below ``root`` with the variables and the user of this process."""
    import getpass

    uid = os.getuid()
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may run with a number that has no name
        name = str(uid)
    return Machine(root, os.environ, User(name, uid, frozenset({os.getgid(), *os.getgroups()})))


def text_of(path: Path) -> str:
    """What is in a file; empty where it is not there or cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
