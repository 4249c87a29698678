"""Rank tables: which NPU of which server is which rank, as HCCL reads it from ``RANK_TABLE_FILE``.

Two forms of the JSON file are in use. The current one (version 1.0) lists servers with
their devices; the older one, which ModelArts still writes, lists groups of instances.
Both are described in the HCCL guide of CANN and in ModelArts' guide to images of one's own.
Which machines there are is read from a list or an OpenMPI host file, addresses of NPUs from ``hccn.conf``.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from migrator.language import N_, MessageError, _

CURRENT, OLDER = "current", "older"
_DEFAULT_SLOTS = 8
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z|\[[0-9A-Fa-f:.]+\]\Z")
_MOST = 4096
Key = TypeVar("Key")


class RankTableError(MessageError):
    """What cannot be read as a rank table, or as a description of hosts; the text is the user's line."""


class Device(NamedTuple):
    """One NPU. ``ip`` is that of its own network card, empty where it is not known."""

    device_id: int
    ip: str
    rank: int


class Server(NamedTuple):
    """One machine; ``name`` is what the table calls its id, usually its address."""

    name: str
    devices: tuple[Device, ...]


class Host(NamedTuple):
    """A machine of which a table is to be made: its NPUs by number, and their addresses as far as known."""

    name: str
    devices: tuple[int, ...]
    addresses: Mapping[int, str]


def build(hosts: Sequence[Host]) -> tuple[Server, ...]:
    """Ranks numbered through the hosts in their order, and within a host by the number of the NPU."""
    ranks = itertools.count()
    return tuple(
        Server(name, tuple(Device(each, addresses.get(each, ""), next(ranks)) for each in sorted(devices)))
        for name, devices, addresses in hosts
    )


def dump(servers: Sequence[Server], form: str = CURRENT) -> str:
    """The JSON text in one of the two forms, ending with a newline."""
    content: dict[str, Any] = {"status": "completed"}
    if form == CURRENT:
        listed = [
            {"server_id": name, "device": [{**_device(each), "rank_id": str(each.rank)} for each in devices]}
            for name, devices in servers
        ]
        content |= {"version": "1.0", "server_count": str(len(servers)), "server_list": listed}
    else:
        content |= {"group_count": "1", "group_list": [_group(servers)]}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _group(servers: Sequence[Server]) -> dict[str, Any]:
    """Ranks have no number of their own in the older form: they are counted in the order of the file."""
    placed = ((device, name) for name, devices in servers for device in devices)
    by_rank = sorted(placed, key=lambda one: one[0].rank)
    instances: list[dict[str, Any]] = []
    for device, name in by_rank:
        if not instances or instances[-1]["server_id"] != name:
            instances.append({"pod_name": f"rank-{device.rank}", "server_id": name, "devices": []})
        instances[-1]["devices"].append(_device(device))
    return {
        "group_name": "hccl_world_group",
        "device_count": str(len(by_rank)),
        "instance_count": str(len(instances)),
        "instance_list": instances,
    }


def _device(device: Device) -> dict[str, str]:
    return {"device_id": str(device.device_id), **({"device_ip": device.ip} if device.ip else {})}


def form_of(content: Any) -> str:
    """Which of the two forms a parsed file has. Raises RankTableError for neither."""
    for key, form in (("server_list", CURRENT), ("group_list", OLDER)):
        if isinstance(content, dict) and key in content:
            return form
    raise RankTableError("not a rank table: neither server_list nor group_list")


def parse(text: str) -> Any:
    """The JSON of a file. Raises RankTableError that names line and column."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = _("line {lineno}, column {colno}: ", lineno=error.lineno, colno=error.colno)
        raise RankTableError("is not JSON: {place}{reason}", place=place, reason=error.msg) from error
    except ValueError as error:  # a number of more digits than Python reads
        raise RankTableError("is not JSON: {place}{reason}", place="", reason=error) from error
    except RecursionError:
        raise RankTableError("not a rank table: brackets nested too deeply") from None


def read(content: Any) -> tuple[Server, ...]:
    """The servers of a table that ``problems`` has nothing against.

    Raises RankTableError for the first problem.
    """
    for problem in problems(content):
        raise RankTableError(problem)
    older = _older_devices(content) if form_of(content) == OLDER else ()
    placed = [(rank, name, one) for rank, (_place, name, one) in enumerate(older)]
    for server in () if placed else content["server_list"]:
        placed += [(int(one["rank_id"]), server["server_id"], one) for one in server["device"]]
    devices: dict[str, list[Device]] = {}
    for rank, name, one in placed:
        devices.setdefault(name, []).append(Device(int(one["device_id"]), one.get("device_ip", ""), rank))
    return tuple(Server(name, tuple(found)) for name, found in devices.items())


def problems(content: Any) -> Iterator[str]:
    """What is wrong with a table, each with its place in the file, such as ``server_list[1].device[0]``.

    Raises RankTableError where it is no table at all.
    """
    form = form_of(content)
    if content.get("status") != "completed":
        yield _("status is {value!r}; a usable table has 'completed'", value=content.get("status"))
    yield from _current_problems(content) if form == CURRENT else _older_problems(content)


def _current_problems(content: Mapping[str, Any]) -> Iterator[str]:
    if content.get("version") not in ("1.0", "1.2"):  # 1.2: the same, and more, for super nodes
        yield _("version is {value!r}, not '1.0'", value=content.get("version"))
    servers = content["server_list"]
    yield from _list_problems(servers, "server_list", content.get("server_count"), "server_count")
    names: dict[str, str] = {}
    ranks: dict[int, str] = {}
    devices: list[tuple[str, str, Any]] = []
    for i, server in _numbered(servers):
        place = f"server_list[{i}]"
        if not isinstance(server.get("server_id"), str):
            yield _("{place} has no server_id", place=place)
            continue
        name = server["server_id"]
        yield from _same(names, name, place, f"server_id {name!r}")
        yield from _list_problems(server.get("device"), f"{place}.device")
        for k, device in enumerate(_items(server.get("device"))):
            here = f"{place}.device[{k}]"
            devices.append((here, name, device))
            rank = _number(device, "rank_id")
            if rank is None:
                yield _("{here}: rank_id is missing or not an integer", here=here)
            else:
                yield from _same(ranks, rank, here, f"rank_id {rank}")
    yield from _device_problems(devices)
    missing = sorted(set(range(len(devices))) - set(ranks))
    if devices and missing and len(ranks) == len(devices):
        said = N_("ranks are not 0 to {devices}: {missing} missing")
        yield _(said, devices=len(devices) - 1, missing=_few(missing))


def _older_problems(content: Mapping[str, Any]) -> Iterator[str]:
    groups = content["group_list"]
    yield from _list_problems(groups, "group_list", content.get("group_count"), "group_count")
    for i, group in _numbered(groups):
        place = f"group_list[{i}]"
        instances = group.get("instance_list")
        yield from _list_problems(
            instances, f"{place}.instance_list", group.get("instance_count"), "instance_count"
        )
        count = 0
        for k, instance in _numbered(instances):
            here, devices = f"{place}.instance_list[{k}]", instance.get("devices")
            if not isinstance(instance.get("server_id"), str):
                yield _("{here} has no server_id", here=here)
            else:
                yield from _list_problems(devices, f"{here}.devices")
                count += len(devices) if isinstance(devices, list) else 0
        stated = group.get("device_count", group.get("device_num"))
        if stated is not None and str(stated) != str(count):
            said = N_("{place}: device_count is {stated}, but there are {count} devices")
            yield _(said, place=place, stated=stated, count=count)
    yield from _device_problems(list(_older_devices(content)))


def _older_devices(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Place, server and device of each rank, in the order of the instances."""
    found = []
    for i, group in enumerate(_items(content.get("group_list"))):
        for k, instance in enumerate(_items(group.get("instance_list"))):
            devices = [
                (f"group_list[{i}].instance_list[{k}].devices[{j}]", str(instance.get("server_id")), device)
                for j, device in enumerate(_items(instance.get("devices")))
            ]
            # An instance's number is its rank_id, or what its pod_name ends with, as ModelArts counts.
            number = _number(instance, "rank_id")
            pod = re.search(r"-(\d+)\Z", str(instance.get("pod_name")))
            found.append((number if number is not None else int(pod.group(1)) if pod else 0, devices))
    if len({number for number, _ in found}) == len(found):
        found.sort(key=lambda one: one[0])
    return (item for _, devices in found for item in devices)


def _numbered(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list, each with its number; of anything else, none."""
    items = enumerate(value) if isinstance(value, list) else ()
    return [(number, item) for number, item in items if isinstance(item, dict)]


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for _, item in _numbered(value)]


def _list_problems(value: Any, place: str, count: Any = None, counter: str = "") -> Iterator[str]:
    if not isinstance(value, list) or not value:
        yield _("{place} is not a list, or is empty", place=place)
    elif counter and count is not None and str(count) != str(len(value)):
        said = N_("{counter} is {count}, but {place} has {value}")
        yield _(said, counter=counter, count=count, place=place, value=len(value))
    elif counter and count is None:
        yield _("{counter} is missing", counter=counter)
    for i, item in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(item, dict):
            yield _("{place} is not an object", place=f"{place}[{i}]")


def _same(seen: dict[Key, str], key: Key, place: str, what: str) -> Iterator[str]:
    """A line where another place has the same; notes the first place of each."""
    first = seen.setdefault(key, place)
    if first != place:
        yield _("{place}: {what} is already used by {first}", place=place, what=what, first=first)


def _device_problems(devices: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    numbers: dict[tuple[str, int], str] = {}
    addresses: dict[str, str] = {}
    without = []
    for place, server, device in devices:
        number = _number(device, "device_id")
        if number is None:
            yield _("{place}: device_id is missing or not an integer", place=place)
            continue
        what = _("device_id {number} of {server}", number=number, server=server)
        yield from _same(numbers, (server, number), place, what)
        address = device.get("device_ip", "")
        if not address:
            without.append(place)
            continue
        try:
            ipaddress.ip_address(address)
        except ValueError:
            yield _("{place}: device_ip {address!r} is not an IP address", place=place, address=address)
        yield from _same(addresses, str(address), place, f"device_ip {address}")
    if without and (len({server for _, server, _ in devices}) > 1 or addresses):
        yield _("{without}: device_ip is missing; several servers need it", without=_few(without))


def _number(value: Any, key: str) -> int | None:
    text = value.get(key) if isinstance(value, dict) else None
    if isinstance(text, str) and text.isascii() and text.isdigit():
        return int(text)
    return text if isinstance(text, int) and not isinstance(text, bool) and text >= 0 else None


def _few(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:3]))
    return shown if len(items) <= 3 else _("{shown} and {items} more", shown=shown, items=len(items) - 3)


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
        raise RankTableError("{file}: no hosts", file=file)
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
            raise RankTableError("--hccn {name}=…: no such host: {name}", name=name)
    result = []
    for name, slots in hosts:
        numbers = tuple(devices) or tuple(range(slots))
        known = addresses.get(name, {})
        missing = [number for number in numbers if known and number not in known]
        if missing:
            raise RankTableError(
                "--hccn of {name}: address_{missing} is missing", name=name, missing=missing[0]
            )
        result.append(Host(name, numbers, known))
    return result


def _host(name: str, slots: str, place: str) -> tuple[str, int]:
    if not _NAME.match(name):
        raise RankTableError("{place}: {name!r} is not a host name or address", place=place, name=name)
    if not slots.isascii() or not slots.isdigit() or not 1 <= int(slots) <= _MOST:
        said = N_("{place}: {slots!r} is not a number of NPUs (1 to {most})")
        raise RankTableError(said, place=place, slots=slots, most=_MOST)
    return name.strip("[]"), int(slots)
