"""The machine that is looked at: its files below a root, variables, user, CANN, driver, a Python's packages.

Packages are read from their metadata, never imported.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from migrator.api_support.companions import family
from migrator.language import _
from migrator.light import Frozen

# Where CANN is installed by default, as root and as another user; the second is the name from CANN 8.5 on.
_ROOTS = ("/usr/local/Ascend", "/opt/Ascend", "~/Ascend")
_TOOLKITS = ("ascend-toolkit", "cann")
DRIVER = "/usr/local/Ascend/driver"
_FIRMWARE = "/usr/local/Ascend/firmware/version.info"
_PACKAGES: tuple[str, ...] = ("torch", "torch_npu", "torchvision", "torchaudio", "apex", "vllm", "triton")
_PACKAGES += ("vllm-ascend", "triton-ascend", "mindspeed", "deepspeed", "mx_driving")
_FILES = ("RECORD", "installed-files.txt", "SOURCES.txt")  # which have the names of a package's files


class User(NamedTuple):
    """Who runs the programs: the name, and the numbers of the user and of the groups of this process."""

    name: str
    uid: int
    groups: frozenset[int]


class Installed(NamedTuple):
    """A version, its family (V100R001C19) and the families that it calls compatible; empty if not known.

    ``firmware`` are the versions of firmware that a driver works with; ``arch`` is CANN's.
    """

    version: str = ""
    family: str = ""
    compatible: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    arch: str = ""


class Machine(Frozen):
    """A machine; ``root`` is the folder in which its ``/`` lies. ``arch`` is empty where it is not known."""

    root: Path
    variables: Mapping[str, str]
    user: User
    arch: str = ""

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

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, sorted; nothing where it cannot be read."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError:
            return []

    def is_ours(self, name: str) -> bool:
        """Whether the user may read and write a file, by its owner, group and mode."""
        status = self.path(name).stat()
        if status.st_uid == self.user.uid:
            shift = 6
        else:
            shift = 3 if status.st_gid in self.user.groups else 0
        return self.user.uid == 0 or (status.st_mode >> shift) & 6 == 6

    def group(self, number: int) -> tuple[str, frozenset[str]]:
        """The name and the members of a group, as ``/etc/group`` has them; the number where it has none."""
        for line in self.text("/etc/group").splitlines():
            name, _, gid, members, *_ = [*line.split(":"), "", "", ""]
            if gid == str(number):
                return name, frozenset(members.split(","))
        return str(number), frozenset()

    def has_library(self, name: str, *folders: str) -> bool:
        """Whether a library lies in a folder of LD_LIBRARY_PATH, or in one of the others."""
        searched = [*filter(None, self.variables.get("LD_LIBRARY_PATH", "").split(":")), *folders]
        return any(self.exists(f"{folder}/{name}") for folder in searched)

    def npus(self) -> list[int]:
        """The numbers of the NPUs that have a device file, or of the emulated ones."""
        if self.emulated is not None:
            return list(range(self.emulated))
        names = (re.fullmatch(r"davinci(\d+)", name) for name in self.names("/dev"))
        return sorted(int(match[1]) for match in names if match)

    def addresses(self) -> set[str]:
        """The machine's own addresses, as the kernel lists them."""
        found, address = set(), ""
        for line in self.text("/proc/net/fib_trie").splitlines():
            leaf = re.match(r"\s*\|--\s+(\S+)", line)
            address = leaf[1] if leaf else address
            if line.strip() == "/32 host LOCAL":
                found.add(address)
        digits = re.findall(r"^[0-9a-f]{32}(?= |$)", self.text("/proc/net/if_inet6"), re.MULTILINE)
        return found | {str(ipaddress.IPv6Address(int(each, 16))) for each in digits}

    def listening(self) -> set[int]:
        """The TCP ports that a program listens on."""
        lines = (self.text(f"/proc/net/{name}").splitlines() for name in ("tcp", "tcp6"))
        found = (re.match(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A ", line) for line in chain(*lines))
        return {int(match[1], 16) for match in found if match}

    def resolves(self, name: str) -> bool:
        """Whether a host is found by its name: in ``/etc/hosts``, or as programs of this machine ask."""
        lines = (line.partition("#")[0].split() for line in self.text("/etc/hosts").splitlines())
        if any(name in words[1:] for words in lines):
            return True
        with suppress(OSError, UnicodeError):
            return self.root == Path("/") and bool(socket.getaddrinfo(name, None))
        return False

    def set_env(self) -> str:
        """The ``set_env.sh`` to source, as the machine has its path; empty where there is none."""
        given = self.variables.get("ASCEND_TOOLKIT_HOME", "")
        folders = [given] if given else []
        folders += [f"{root}/{toolkit}" for root in _ROOTS for toolkit in _TOOLKITS]
        return next((f"{one}/set_env.sh" for one in folders if self.exists(f"{one}/set_env.sh")), "")

    def cann(self) -> Installed:
        """The CANN of ASCEND_HOME_PATH, or else the one that would be sourced."""
        home = self.variables.get("ASCEND_HOME_PATH") or os.path.dirname(self.set_env())
        for folder in (home, f"{home}/latest") if home else ():
            for place in (folder, *(f"{folder}/{arch}-linux" for arch in ("aarch64", "x86_64", "arm64"))):
                for package in ("toolkit", "nnae", "nnrt"):
                    found = self._installed(f"{place}/ascend_{package}_install.info", "version")
                    if found.version:
                        return found
        return Installed()

    def driver(self) -> Installed:
        """The driver, which belongs to the machine, not to the emulator on it."""
        if self.emulated is not None:
            return Installed()
        return self._installed(f"{DRIVER}/version.info", "package_version", "version")

    def firmware(self) -> Installed:
        """The firmware, which belongs to the machine as well."""
        return Installed() if self.emulated is not None else self._installed(_FIRMWARE, "version")

    def _installed(self, file: str, *keys: str) -> Installed:
        """What an installer's file of ``name=value`` lines says; the first of the keys has the version."""
        pairs = (line.partition("=") for line in self.text(file).splitlines())
        found = {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}

        def ranges(key: str) -> tuple[str, ...]:
            """[V100R001C13,V100R001C19],[V100R001C30]: a range and a single one."""
            each = re.findall(r"\[([^\[\]]*)\]", found.get(key, ""))
            return tuple("-".join(part.strip() for part in one.split(",")) for one in each)

        version = next(filter(None, map(found.get, keys)), "")
        own = family(found.get("innerversion", ""))
        rest = (ranges("compatible_version"), ranges("compatible_version_fw"), found.get("arch", ""))
        return Installed(version, own, *rest)


def this_machine(root: Path) -> Machine:
    """The machine below ``root`` with the variables and the user of this process."""
    import getpass

    uid = os.getuid()
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may run with a number that has no name
        name = str(uid)
    user = User(name, uid, frozenset({os.getgid(), *os.getgroups()}))
    return Machine(root, os.environ, user, os.uname().machine if root == Path("/") else "")


def text_of(path: Path) -> str:
    """What is in a file; empty where it is not there or cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class Package(Frozen):
    """An installed package; ``torch`` is the torch that its metadata requires, empty where it names none."""

    version: str
    torch: str = ""
    for_npu: bool = False  # of apex: it has Ascend's optimizers
    arch: str = ""  # that its compiled part is for


class Python(Frozen):
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
            _("{path} is not a Python environment: it has no lib/python3.*/site-packages", path=path)
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
    for name in _PACKAGES:
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
        arch = re.search(r"(?m)^Tag: .*(x86_64|aarch64)$", distribution.read_text("WHEEL") or "")
        found[name] = Package(
            distribution.version, torch[1] if torch else "", for_npu, arch[1] if arch else ""
        )
    return found
