"""Which machines there are: a list, an OpenMPI host file, and ``hccn.conf`` for the addresses of NPUs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence

from migrator.language import N_, _
from migrator.launch.rank_table import Host, RankTableError

_DEFAULT_SLOTS = 8
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z|\[[0-9A-Fa-f:.]+\]\Z")
_MOST = 4096


def parse_hosts(text: str) -> list[tuple[str, int]]:
    """Hosts and their number of NPUs from ``a:8,b:8``; eight where no number is given.

    Raises RankTableError that names the part that is wrong.
    """
    found: dict[str, int] = {}
    for number, part in enumerate(map(str.strip, text.split(",")), 1):
        name, colon, slots = part.rpartition(":")
        if not colon or part.endswith("]"):
            name, slots = part, str(_DEFAULT_SLOTS)
        host, count = _host(name, slots, _("--hosts, part {number} ({strip!r})", number=number, strip=part))
        if host in found:
            raise RankTableError("--hosts: {name} is given twice", name=host)
        found[host] = count
    return list(found.items())


def parse_hostfile(text: str, file: str) -> list[tuple[str, int]]:
    """Hosts and NPUs from an OpenMPI host file: ``host slots=8 max_slots=8``, # and empty lines.

    A host without ``slots`` has one, as with OpenMPI; one that stands there
    twice has the sum. Raises RankTableError with file and line.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        place = f"{file}:{number}"
        slots = "1"
        for word in words[1:]:
            key, sign, value = word.partition("=")
            if not sign or key.replace("-", "_") not in ("slots", "max_slots"):
                said = N_("{place}: {word!r} is neither slots=N nor max_slots=N")
                raise RankTableError(said, place=place, word=word)
            slots = value if key == "slots" else slots
        name, count = _host(words[0], slots, place)
        found[name] = found.get(name, 0) + count
    if not found:
        raise RankTableError("{file}: no host in it", file=file)
    return list(found.items())


def parse_hccn(text: str, file: str) -> dict[int, str]:
    """The addresses of a machine's NPUs from its ``/etc/hccn.conf``: ``address_0=192.168.100.101``.

    Raises RankTableError with file and line.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*address_(\d+)\s*=\s*(\S+)\s*$", line)
        if match:
            device, address = int(match.group(1)), match.group(2)
            place = f"{file}:{number}"
            try:
                ipaddress.ip_address(address)
            except ValueError:
                said = N_("{place}: {address!r} is not an IP address")
                raise RankTableError(said, place=place, address=address) from None
            if device in found:
                raise RankTableError("{place}: address_{device} is given twice", place=place, device=device)
            found[device] = address
    if not found:
        raise RankTableError("{file}: no line address_<n>=<IP address>", file=file)
    return found


def with_addresses(
    hosts: Sequence[tuple[str, int]], addresses: Mapping[str, Mapping[int, str]], devices: Sequence[int] = ()
) -> list[Host]:
    """The hosts with the addresses that are known of them; ``devices`` are the NPUs to use on each.

    Raises RankTableError where addresses are given for a host that is not
    there, or not for all of a host's NPUs.
    """
    for name in addresses:
        if name not in dict(hosts):
            raise RankTableError("--hccn {name}=…: there is no host {name}", name=name)
    result = []
    for name, slots in hosts:
        numbers = tuple(devices) or tuple(range(slots))
        known = addresses.get(name, {})
        missing = [number for number in numbers if known and number not in known]
        if missing:
            raise RankTableError("--hccn of {name} has no address_{missing}", name=name, missing=missing[0])
        result.append(Host(name, numbers, known))
    return result


def _host(name: str, slots: str, place: str) -> tuple[str, int]:
    if not _NAME.match(name):
        raise RankTableError("{place}: {name!r} is not a host name or address", place=place, name=name)
    if not slots.isascii() or not slots.isdigit() or not 1 <= int(slots) <= _MOST:
        said = N_("{place}: {slots!r} is not a number of NPUs (1 to {most})")
        raise RankTableError(said, place=place, slots=slots, most=_MOST)
    return name.strip("[]"), int(slots)
