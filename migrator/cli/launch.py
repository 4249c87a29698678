"""``npumigrate launch``: what is needed to start a program on several machines."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

import typer

from migrator.cli.ending import PROBLEMS, note, stop, stopping_at, wrapped
from migrator.cli.launch_files import give, text_of
from migrator.cli.launch_k8s import k8s
from migrator.cli.launch_mindspore import mindspore
from migrator.cli.launch_modelarts import modelarts
from migrator.cli.next_commands import say_next, shell_word
from migrator.cli.options import described
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.launch.rank_table import Host

launch = typer.Typer(help="Prepare the start of a program on several machines.", rich_markup_mode=None)
rank_table = typer.Typer(rich_markup_mode=None)
launch.add_typer(rank_table, name="rank-table")
for target in (k8s, modelarts, mindspore):
    launch.command()(described(f"launch {target.__name__}")(target))


@rank_table.callback(invoke_without_command=True)
@described("launch rank-table")
def make(
    context: typer.Context,
    hosts: Optional[str] = None,
    hostfile: Optional[Path] = None,
    hccn: Optional[list[str]] = None,
    devices: Optional[str] = None,
    form: str = "current",
    output: Optional[Path] = None,
) -> None:
    """Make an HCCL rank table from hosts, or check and convert one.

    What was assumed is said on the standard error. Exit status: 0 done; 1 check
    found problems; 2 usage error or unreadable input.
    """
    if context.invoked_subcommand:
        return
    from migrator.launch.rank_table import RankTableError, build, dump

    with stopping_at(RankTableError):
        described = _hosts(hosts, hostfile, hccn or [], _numbers(devices))
    for line in _assumptions(described):
        note(f"assumed: {line}")
    give(dump(build(described), form), output)
    _say_check(output)


def _hosts(hosts: str | None, hostfile: Path | None, hccn: list[str], devices: list[int]) -> list[Host]:
    from migrator.launch.hosts import parse_hccn, parse_hostfile, parse_hosts, with_addresses
    from migrator.launch.rank_table import RankTableError

    if hosts and hostfile:
        raise RankTableError("--hosts and --hostfile exclude each other")
    addresses = {}
    for value in hccn:
        name, sign, file = value.partition("=")
        if not sign:
            name, file = "", value
        addresses[name] = parse_hccn(text_of(Path(file)), file)
    if hosts:
        found = parse_hosts(hosts)
    elif hostfile:
        found = parse_hostfile(text_of(hostfile), str(hostfile))
    elif addresses:  # hccn.conf alone: this machine, with the NPUs that it names
        found = [(name or socket.gethostname(), max(known) + 1) for name, known in addresses.items()]
        devices = devices or sorted(next(iter(addresses.values())))
    else:
        raise RankTableError("no hosts given: use --hosts a:8,b:8, --hostfile FILE or --hccn /etc/hccn.conf")
    if "" in addresses:
        if len(found) > 1:
            raise RankTableError("--hccn FILE is for one host; for several use --hccn HOST=FILE")
        addresses[found[0][0]] = addresses.pop("")
    return with_addresses(found, addresses, devices)


def _numbers(text: str | None) -> list[int]:
    found: list[int] = []
    for part in (text or "").split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < 4096):
            stop("--devices: {part!r} is not like 0 or 4-7", part=part)
        found += range(int(first), int(last) + 1)
    if len(set(found)) < len(found):
        stop("--devices: {text} names a device twice", text=text)
    return found


def _assumptions(hosts: list[Host]) -> list[str]:
    said = N_("ranks 0 to {hosts}, numbered through the hosts in their order")
    lines = [_(said, hosts=sum(len(host.devices) for host in hosts) - 1)]
    without = [host.name for host in hosts if not host.addresses]
    if without and len(hosts) > 1:
        shown = ", ".join(without[:3]) + (
            _(" and {without} more", without=len(without) - 3) if len(without) > 3 else ""
        )
        said = N_("no addresses of the NPUs of {shown}: HCCL needs them between servers (--hccn HOST=FILE)")
        lines.append(_(said, shown=shown))
    elif without:
        lines.append(_("no addresses of the NPUs: one server needs none"))
    return lines


@rank_table.command()
@described("launch rank-table check")
def check(file: Path) -> None:
    """Check a rank table: counts, duplicate ranks, devices and addresses."""
    from migrator.launch.rank_table import RankTableError, form_of, problems, read

    content = _content(file)
    try:
        found = list(problems(content))
        if not found:
            servers = read(content)
            ranks = sum(len(server.devices) for server in servers)
            said = N_("{file}: {content} form, servers: {servers}, ranks: {ranks}")
            typer.echo(_(said, file=file, content=form_of(content), servers=len(servers), ranks=ranks))
            return
    except RankTableError as error:
        stop(f"{file} {error}")
    for problem in found:
        typer.echo(wrapped(f"{file}: {problem}"))
    raise typer.Exit(PROBLEMS)


@rank_table.command()
@described("launch rank-table convert")
def convert(file: Path, form: str = "current", output: Optional[Path] = None) -> None:
    """Write a rank table in the other format."""
    from migrator.launch.rank_table import RankTableError, dump, read

    try:
        servers = read(_content(file))
    except RankTableError as error:
        stop(f"{file}: {error}")
    give(dump(servers, form), output)
    _say_check(output)


@launch.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@described("launch mpi")
def mpi(line: list[str], table: Optional[Path] = None) -> None:
    """Turn an mpirun, mpiexec or horovodrun line into launcher commands.

    Prints the command for each host; what was assumed and left out is said on
    the standard error. Exit status: 0 done; 2 the line is not understood.
    """
    from migrator.files.errors import harmless
    from migrator.launch.mpi import MpiLineError, plan, plan_line
    from migrator.launch.rank_table import Host, RankTableError, build, dump
    from migrator.project.frameworks import other_framework, why_not_started

    with stopping_at(MpiLineError, RankTableError):
        read: Callable[[str], str] = lambda file: text_of(Path(file))  # noqa: E731
        found = plan_line(line[0], read) if len(line) == 1 else plan(line, read)
        if table and not all(count for host, count in found.hosts):
            raise MpiLineError("--rank-table needs a number of ranks, not a shell variable")
        framework = other_framework(read(found.entry)) if Path(found.entry).is_file() else ""
        if framework:
            raise MpiLineError(why_not_started(harmless(found.entry), framework))
    for each in found.notes:
        note(harmless(each))
    for (host, _count), command in zip(found.hosts, found.commands):
        typer.echo(f"# on {host}\n{command}" if len(found.hosts) > 1 else command)
    if table:
        give(dump(build([Host(name, tuple(range(count)), {}) for name, count in found.hosts])), table)
        _say_check(table)


def _say_check(written: Optional[Path]) -> None:
    """What comes after a rank table that was written to a file."""
    if written:
        say_next(f"npumigrate launch rank-table check {shell_word(str(written))}")


def _content(file: Path) -> Any:
    from migrator.launch.rank_table import RankTableError, parse

    try:
        return parse(text_of(file))
    except RankTableError as error:
        stop(f"{file} {error}")
