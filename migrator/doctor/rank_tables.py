"""Whether the rank table that RANK_TABLE_FILE names can be used on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.doctor.fault import Fault, fault
from migrator.doctor.machine import Machine
from migrator.language import N_, _
from migrator.launch.rank_table import RankTableError, Server, parse, problems, read

_MOST = 3  # problems of one file; the rest follows from them often enough


def rank_table_faults(machine: Machine) -> Iterator[Fault]:
    """What is wrong with the file, with the table in it, or with the table on this machine."""
    file = machine.variables.get("RANK_TABLE_FILE", "")
    if not file:
        return
    if not machine.exists(file):
        yield fault("rank-table-missing", file=file)
        return
    path = machine.path(file)
    if path.is_symlink() or not path.is_file():
        advice = _("name the file itself: torch_npu takes no link and no folder")
        problem = _("that is a link") if path.is_symlink() else _("that is not a file")
        yield fault("rank-table-file", file=file, problem=problem, advice=advice)
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        advice = _("make it readable: chmod a+r")
        yield fault("rank-table-file", file=file, problem=_("it cannot be read"), advice=advice)
        return
    try:
        content = parse(text)
        wrong = list(problems(content))
        servers = () if wrong else read(content)
    except RankTableError as error:
        wrong, servers = [str(error)], ()
    for problem in wrong[:_MOST]:
        yield fault("rank-table-wrong", file=file, problem=problem)
    if servers:
        for problem in _elsewhere(machine, servers):
            yield fault("rank-table-elsewhere", file=file, problem=problem)


def _elsewhere(machine: Machine, servers: tuple[Server, ...]) -> Iterator[str]:
    """Where a right table is not about this machine, or about another number of ranks."""
    own = machine.addresses()
    named = [server for server in servers if server.name in own]
    if len(servers) > 1 and own and not named and all(_is_address(server.name) for server in servers):
        names = ", ".join(server.name for server in servers[:3])
        yield _("none of its servers ({servers}) is this one", servers=names)
    here = named[0] if named else servers[0] if len(servers) == 1 else None
    npus = machine.npus()
    if here is not None and npus:
        missing = sorted({device.device_id for device in here.devices} - set(npus))
        if missing:
            numbers = ", ".join(map(str, missing))
            said = N_("its server {name} has the NPUs {numbers}, which are not here")
            yield _(said, name=here.name, numbers=numbers)
    ranks = sum(len(server.devices) for server in servers)
    for name in ("WORLD_SIZE", "RANK_SIZE"):
        given = machine.variables.get(name, "")
        if given.isdecimal() and int(given) != ranks:
            yield _("it has {ranks} ranks, and {name} is {given}", ranks=ranks, name=name, given=given)
            break


def _is_address(name: str) -> bool:
    return name.replace(".", "").isdigit() or ":" in name
