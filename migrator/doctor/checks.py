"""All checks of a machine: environment, device files, packages, network, rank table and limits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain

from migrator.api_support import env_vars
from migrator.api_support.companions import (
    Companion,
    cann_order,
    companions,
    drivers,
    names,
    of_torch,
    of_torch_npu,
    order,
    release_for,
)
from migrator.data_folders import reports_yaml
from migrator.doctor.machine import DRIVER, Installed, Machine, Package, Python
from migrator.language import N_, _
from migrator.launch.fault_texts import Fault, fault
from migrator.launch.rank_table import RankTableError, Server, parse, parse_hccn, problems, read

# Beside /dev/davinci<n>; what docker/OVERVIEW.md of torch_npu passes to a container.
_MANAGER = "/dev/davinci_manager"
_COMMON = (_MANAGER, "/dev/devmm_svm", "/dev/hisi_hdc")
_NAMES = re.compile(r"(\d+(-\d+)?|[A-Za-z]\w*-\d+)(,(\d+(-\d+)?|[A-Za-z]\w*-\d+))*")
_FORMS = {  # of values, and what is wrong with others
    "ports": (r"auto|\d+(-\d+)?(,\d+(-\d+)?)*", N_("not a list of ports")),
    "number": (r"\d+(\.\d+)?", N_("not a number from 0 on")),
}
_HCCN = "/etc/hccn.conf"
_MORE_PORTS = (8, 2)  # the CANN from which on HCCL takes 32 ports instead of 16
_EXEC_TIMEOUT = 1836  # seconds, HCCL's and torch_npu's default
_SHORT = 68  # seconds; the smallest step of Atlas A1
_SHARED_MEMORY = 1024  # MiB; a container has 64 unless it is given more
_OPEN_FILES = 1024  # the usual limit of a login
_MOST = 3  # problems of one rank table; the rest follows from them often enough


def examine(machine: Machine, python: Python | None) -> list[Fault]:
    """Look at everything: what is wrong, errors first; without a ``python`` its packages are left out."""
    cann, emulated = machine.cann(), machine.emulated is not None
    found = [*_environment(machine), *(() if emulated else _devices(machine))]
    if python is not None:
        found += chain(*(look(python, cann) for look in (_package_faults, _release_faults, _ecosystem)))
    found += _driver_faults(cann, machine.driver(), machine.firmware())
    compiled: dict[str, Package | Installed] = {"CANN": cann, **(python.packages if python else {})}
    for name, one in compiled.items():
        if machine.arch and one.arch and one.arch != machine.arch:
            values = {"version": one.version, "arch": one.arch, "machine": machine.arch}
            found.append(fault("architecture", name=name, **values))
    found += [*_variables(machine), *_names(machine)]
    found += [] if emulated else [*_ports(machine, cann), *_hccn(machine)]
    found += [*_rank_table(machine), *_limits(machine)]
    return sorted(found, key=lambda one: one.severity)  # error before warning


def _environment(machine: Machine) -> Iterator[Fault]:
    """CANN's environment: without it torch_npu cannot be imported."""
    home, script = machine.variables.get("ASCEND_HOME_PATH", ""), machine.set_env()
    if not home:
        yield fault("set-env", file=script) if script else fault("set-env-missing")
    elif not machine.exists(home):
        yield fault("home-path", path=home)
    elif not machine.has_library("libhccl.so"):
        yield fault("hccl-missing")


def _devices(machine: Machine) -> Iterator[Fault]:
    """Device files that are missing or may not be opened, and the driver's library, which CANN loads."""
    npus = machine.npus()
    if machine.exists(_MANAGER) and not npus:
        yield fault("no-npu")
    files = [*_COMMON, *(f"/dev/davinci{number}" for number in npus)]
    for file in files if machine.exists(_MANAGER) else [_MANAGER]:
        if not machine.exists(file):
            yield fault("no-device", file=file)
        elif not machine.is_ours(file):
            status = machine.path(file).stat()
            group, members = machine.group(status.st_gid)
            listed = machine.user.name in members and status.st_mode & 0o060 == 0o060
            yield fault("login-again" if listed else "device-permission", file=file, group=group)
    below = (f"{DRIVER}/lib64{folder}" for folder in ("", "/driver", "/common"))
    if not machine.has_library("libascend_hal.so", *below):
        yield fault("driver-missing")


def _package_faults(python: Python, cann: Installed) -> Iterator[Fault]:
    """Packages that are missing, or made for another torch or Python; what to install suits ``cann``."""
    torch, torch_npu = python.packages.get("torch"), python.packages.get("torch_npu")
    if torch is None or torch_npu is None:
        missing = "torch" if torch is None else "torch_npu"
        release = release_for(torch.version, cann.version) if torch else ""
        what = f"torch_npu=={release}" if release else _("torch_npu, with its matching torch")
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


def _release_faults(python: Python, cann: Installed) -> Iterator[Fault]:
    """CANN for another torch_npu, by ``releases.csv``, where no package has asked for just that one."""
    torch_npu = python.packages.get("torch_npu")
    release = of_torch_npu(torch_npu.version) if torch_npu else None
    asked = any(cann.version in row.cann for row in _rows(python))
    if release is not None and release.cann and cann.version and not asked:
        have, wanted = cann_order(cann.version), cann_order(release.cann)
        if have is not None and wanted is not None and have != wanted:
            others = ", ".join(
                one.torch_npu for one in of_torch(release.torch) if cann_order(one.cann) == have
            )
            other = _("or torch_npu {others}", others=others) if others else ""
            other = other or _("or a torch_npu for CANN {cann}", cann=cann.version)
            values = {"cann": cann.version, "torch_npu": release.torch_npu, "wanted": release.cann}
            yield fault("cann-older" if have < wanted else "cann-newer", or_release=other, **values)


def _driver_faults(cann: Installed, driver: Installed, firmware: Installed) -> Iterator[Fault]:
    """A driver for another CANN, by what they and ``drivers.csv`` say, and firmware for another driver."""
    values = {"driver": driver.version, "family": driver.family, "cann": cann.version}
    hdk, *works = drivers().get(cann.version, ("",))
    if cann.family and driver.family and cann.family != driver.family and cann.compatible:
        if not names(cann.compatible, driver.family) and not names(driver.compatible, cann.family):
            yield fault("driver-pair", wanted=", ".join(cann.compatible), **values)
    elif driver.version and works and order(driver.version) < min(map(order, works)):
        yield fault("driver-older", hdk=hdk, wanted=", ".join(works), **values)
    ranges = [one.partition("-") for one in driver.firmware if firmware.version]
    if ranges and not any(
        order(first) <= order(firmware.version) <= order(last or first) for first, _, last in ranges
    ):
        yield fault("firmware-pair", firmware=firmware.version, wanted=", ".join(driver.firmware), **values)


def _rows(python: Python) -> Iterator[Companion]:
    """What ``ecosystem.csv`` says of the packages that are installed."""
    for row in companions():
        if row.package in python.packages and row.version == python.packages[row.package].version:
            yield row


def _ecosystem(python: Python, cann: Installed) -> Iterator[Fault]:
    """Packages that go with other versions of what is there, and such as exclude each other."""
    packages = python.packages
    have = {name: package.version.partition("+")[0] for name, package in packages.items()}
    have["CANN"] = cann.version
    for row in _rows(python):
        wanted = {"torch": row.torch, "torch_npu": row.torch_npu, "CANN": row.cann}
        wanted |= {name: (version,) for name, version in row.needed.items()}
        for name, versions in wanted.items():
            other = have.get(name, "") not in ("", *versions) and ".dev" not in have[name]
            if versions and other and row.package != "torch_npu":
                values = {"package": row.package, "version": row.version, "name": name, "have": have[name]}
                yield fault("goes-with", wanted=", ".join(versions), **values)
    if "vllm" in packages and "vllm-ascend" not in packages:
        yield fault("without-ascend")
    if "triton" in packages and "triton-ascend" in packages:
        yield fault("with-triton")


def _base(version: str) -> str:
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version


def _variables(machine: Machine) -> Iterator[Fault]:
    """ASCEND_RT_VISIBLE_DEVICES and its like, and values that HCCL or torch_npu do not take."""
    given = machine.variables.get
    value, container, cuda = (
        given(f"{name}_VISIBLE_DEVICES", "") for name in ("ASCEND_RT", "ASCEND", "CUDA")
    )
    npus = machine.npus()
    if value and (problem := _choice_problem(value, npus)):
        yield fault("visible-devices", value=value, problem=problem, count=len(npus))
    if container and container != "void" and not _NAMES.fullmatch(container):
        yield fault("container-devices", value=container)
    if cuda and not value:
        yield fault("cuda-devices", value=cuda)
    for name, (values, what) in _looked_at().items():
        if (value := given(name, "")) and (problem := _value_problem(machine, values, value)):
            yield fault("variable", name=name, value=value, problem=problem, what=what)
    if given("HCCL_WHITELIST_DISABLE") == "0":
        file = given("HCCL_WHITELIST_FILE", "")
        if not file or not machine.exists(file):
            problem = _("is {file}, which is not a file", file=file) if file else _("is not set")
            yield fault("whitelist", problem=problem)


def _choice_problem(value: str, npus: list[int]) -> str:
    words = value.split(",")
    if wrong := [word for word in words if not word.strip().isdecimal()]:
        return _("{wrong!r} is not a number", wrong=wrong[0])
    numbers = [int(word) for word in words]
    if twice := [number for number in numbers if numbers.count(number) > 1]:
        return _("{twice} is given twice", twice=twice[0])
    # In a container with /dev/davinci4 alone, that may be NPU 4 or NPU 0.
    beyond = [number for number in numbers if npus and number >= len(npus) and number not in npus]
    return _("NPU {beyond} does not exist", beyond=beyond[0]) if beyond else ""


@cache
def _looked_at() -> dict[str, tuple[str, str]]:
    """The values that each variable takes, and what to write instead of others."""
    content = reports_yaml("doctor_variables.yaml")
    found = {one["name"]: (str(one["values"]), _(one["what"])) for one in content}
    for variable in env_vars.known().values():
        if variable.npu and variable.values:
            advice = variable.advice or _("unset it")
            found.setdefault(variable.npu, (" ".join(map(str, variable.values)), advice))
    return found


def _value_problem(machine: Machine, values: str, value: str) -> str:
    """What is wrong with a value; empty where it is right."""
    if values == "address":
        try:
            address = str(ipaddress.ip_address(value))
        except ValueError:
            return _("not an IP address")
        own = machine.addresses()
        return (
            _("no network interface of this machine has that address") if own and address not in own else ""
        )
    if values in ("card", "cards"):
        cards = machine.names("/sys/class/net")
        each = [f"={one}" for one in value.split(",")] if values == "cards" else [value]
        return next(filter(None, (_card_problem(cards, one) for one in each)), "")
    if values in _FORMS:
        form, problem = _FORMS[values]
        return "" if re.fullmatch(form, value) else _(problem)
    limits = re.fullmatch(r"(\d+)-(\d+)", values)
    if limits is None:
        return "" if value in values.split() else _("HCCL and torch_npu accept other values")
    if value.isdecimal() and int(limits[1]) <= int(value) <= int(limits[2]):
        return ""
    return _("expected integers from {limits} to {limits2}", limits=limits[1], limits2=limits[2])


def _card_problem(cards: list[str], value: str) -> str:
    """``eth,en``: cards whose names begin so; ``=eth0``: just that one; with ``^`` before it: all others."""
    without = value.removeprefix("^")
    exact = without.startswith("=")
    wanted = [word for word in without.removeprefix("=").split(",") if word]
    if not wanted:
        return _("it does not name a network interface")
    fit = {card for card in cards for word in wanted if (card == word if exact else card.startswith(word))}
    if not cards or (set(cards) - fit if value.startswith("^") else fit):
        return ""
    return _("no network interface matches; available: {cards}", cards=", ".join(cards))


def _names(machine: Machine) -> Iterator[Fault]:
    """Hosts that cannot be found by name, and time-outs that end what is only slow."""
    given = machine.variables.get
    master, own = given("MASTER_ADDR", ""), machine.text("/proc/sys/kernel/hostname").strip()
    if re.search(r"[g-zG-Z]", master) and not machine.resolves(master):  # an address has no such letters
        yield fault("master-address", master=master)
    if own and not given("GLOO_SOCKET_IFNAME") and not machine.resolves(own):
        yield fault("host-name", name=own)
    execution, event = (given(f"HCCL_{name}_TIMEOUT", "") for name in ("EXEC", "EVENT"))
    seconds = int(execution) if execution.isdecimal() else _EXEC_TIMEOUT
    if 0 < seconds < _SHORT:
        yield fault("exec-timeout", value=seconds)
    if event.isdecimal() and 0 < int(event) <= seconds:
        yield fault("event-timeout", event=event, execution=seconds)


def _ports(machine: Machine, cann: Installed) -> Iterator[Fault]:
    """Ports of torchrun and of HCCL on which another program listens."""
    given, taken = machine.variables.get, machine.listening()
    master, first = given("MASTER_PORT", "29500"), given("HCCL_IF_BASE_PORT", "60000")
    if master in map(str, taken) and given("RANK", "0") == "0":
        yield fault("master-port", port=master)
    count = 32 if (cann_order(cann.version) or (0,)) >= _MORE_PORTS else 16
    base = f"{first}-{int(first) + count - 1}" if first.isdecimal() else ""
    said = given("HCCL_HOST_SOCKET_PORT_RANGE", base)
    ranges = re.findall(r"(\d+)(?:-(\d+))?", said)
    busy = [port for port in taken if any(int(low) <= port <= int(high or low) for low, high in ranges)]
    if busy:
        yield fault("hccl-ports", ports=said, taken=", ".join(map(str, sorted(busy))))


def _hccn(machine: Machine) -> Iterator[Fault]:
    """The addresses of the NPUs' own network cards, by which servers reach one another."""
    npus = machine.npus()
    if npus and not machine.exists(_HCCN):
        yield fault("hccn-missing")
    elif npus:
        try:
            known = parse_hccn(machine.text(_HCCN), _HCCN)
        except RankTableError as error:
            yield fault("hccn-wrong", problem=error)
            return
        if missing := [number for number in npus if number not in known]:
            yield fault("hccn-incomplete", missing=", ".join(map(str, missing)), first=missing[0])


def _rank_table(machine: Machine) -> Iterator[Fault]:
    """What is wrong with RANK_TABLE_FILE, with the table in it, or with the table on this machine."""
    file = machine.variables.get("RANK_TABLE_FILE", "")
    path = machine.path(file)
    if not file:
        return
    if not machine.exists(file):
        yield fault("rank-table-missing", file=file)
        return
    if path.is_symlink() or not path.is_file():
        advice = _("name the file itself: torch_npu accepts neither links nor folders")
        problem = _("a link") if path.is_symlink() else _("not a file")
        yield fault("rank-table-file", file=file, problem=problem, advice=advice)
        return
    try:
        content = parse(path.read_text(encoding="utf-8"))
        wrong = list(problems(content))
        servers = () if wrong else read(content)
    except RankTableError as error:
        wrong, servers = [str(error)], ()
    except (OSError, UnicodeDecodeError):
        advice = _("make it readable: chmod a+r")
        yield fault("rank-table-file", file=file, problem=_("it cannot be read"), advice=advice)
        return
    yield from (fault("rank-table-wrong", file=file, problem=problem) for problem in wrong[:_MOST])
    for problem in _elsewhere(machine, servers) if servers else ():
        yield fault("rank-table-elsewhere", file=file, problem=problem)


def _elsewhere(machine: Machine, servers: tuple[Server, ...]) -> Iterator[str]:
    """Where a right table is not about this machine, or about another number of ranks."""
    own, npus = machine.addresses(), machine.npus()
    named = [server for server in servers if server.name in own]
    addresses = all(one.name.replace(".", "").isdigit() or ":" in one.name for one in servers)
    if len(servers) > 1 and own and not named and addresses:
        names = ", ".join(server.name for server in servers[:3])
        yield _("none of its servers ({servers}) is this machine", servers=names)
    here = named[0] if named else servers[0] if len(servers) == 1 else None
    missing = sorted({device.device_id for device in here.devices} - set(npus)) if here and npus else ()
    if here and missing:
        said = N_("its server {name} lists the NPUs {numbers}, which this machine does not have")
        yield _(said, name=here.name, numbers=", ".join(map(str, missing)))
    ranks = sum(len(server.devices) for server in servers)
    for name in ("WORLD_SIZE", "RANK_SIZE"):
        given = machine.variables.get(name, "")
        if given.isdecimal() and int(given) != ranks:
            yield _("it has {ranks} ranks, but {name} is {given}", ranks=ranks, name=name, given=given)
            break


def _limits(machine: Machine) -> Iterator[Fault]:
    """What training with many workers and ranks uses up."""
    for line in machine.text("/proc/mounts").splitlines():
        _, place, _, options, *_ = [*line.split(), "", "", "", ""]
        size = re.search(r"(?:^|,)size=(\d+)([kmg]?)", options)
        if place == "/dev/shm" and size:  # nosec B108 # it is looked at
            mebibytes = int(size[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[size[2]] >> 20
            if mebibytes < _SHARED_MEMORY:
                yield fault("shared-memory", size=mebibytes)
            break
    limit = re.search(r"^Max open files\s+(\d+)", machine.text("/proc/self/limits"), re.MULTILINE)
    if limit and int(limit[1]) <= _OPEN_FILES:
        yield fault("open-files", limit=limit[1])
