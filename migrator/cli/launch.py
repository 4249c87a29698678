"""``npumigrate launch``: what is needed to start a program on several machines."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

import typer

from migrator.cli.ending import PROBLEMS, check_folder, note, stop, wrapped
from migrator.cli.next_commands import say_next, shell_word
from migrator.cli.options import Given, described
from migrator.files.errors import (
    CannotWrite,
    ResultExists,
    SourceError,
    Unreadable,
    cannot_write,
    harmless,
    shown,
)
from migrator.language import N_, _
from migrator.launch import rank_table
from migrator.launch.rank_table import Host, RankTableError

if TYPE_CHECKING:
    from migrator.launch.target import Launch, Start

launch = typer.Typer(
    help="Prepare distributed jobs: rank tables, Kubernetes, ModelArts, MPI, MindSpore.",
    rich_markup_mode=None,
)
rank_tables = typer.Typer(rich_markup_mode=None)
launch.add_typer(rank_tables, name="rank-table")


@launch.command()
@described("launch k8s")
def k8s(given: Given) -> None:
    """Write a Kubernetes manifest for Ascend NPUs, or convert one for GPUs.

    The manifest is a Kubeflow PyTorchJob or a Volcano Job. Assumptions, changes and leftovers are
    printed on standard error. Exit status: 0 done; 2 usage error, or an input that cannot be
    converted.
    """
    from migrator.launch.k8s.cluster import ManifestError
    from migrator.launch.k8s.convert import convert
    from migrator.launch.k8s.jobs import FIELDS, Description, described, generate, read_job

    fields = {name: value for name in FIELDS if (value := getattr(given, name))}
    job, manifest = given.job, given.manifest
    if manifest:
        of_new_jobs = (FIELDS[name].option for name in fields if not FIELDS[name].of_manifest)
        other = "--job" if job else next(of_new_jobs, "")
        if other:
            raise ManifestError(
                "--from and {other} cannot be used together: the manifest decides", other=other
            )
        wanted = described(fields)
        found = convert(text_of(manifest, "utf-8"), str(manifest), wanted.cluster(), wanted.image)
    elif fields or job:
        start = read_job(text_of(job, "utf-8"), str(job)) if job else Description()
        found = generate(described(fields, start))
    else:
        raise ManifestError("no job given: use --from FILE, --job FILE, or --name, --image and -- COMMAND")
    for line in found.notes:
        note(harmless(line))
    give(found.text, given.output)
    if given.output:
        say_next(f"kubectl apply -f {shell_word(str(given.output))}")


@launch.command()
@described("launch modelarts")
def modelarts(given: Given) -> None:
    """Write a ModelArts boot file that starts the training script under torch's own launcher.

    Assumptions are printed on standard error. Exit status: 0 done; 2 usage error or nothing written.
    """
    from migrator.launch.target import boot_file, parse_pair

    given_pairs = (("--map", given.inputs), ("--output", given.outputs))
    pairs = [[parse_pair(option, text) for text in texts or ()] for option, texts in given_pairs]
    start, text, notes = find_start(given.folder, given.main)
    made = boot_file(start, *pairs)
    write_all(given.folder, made, given.overwrite)
    ranks = start.way.ranks if start.way else ""
    if ranks == "program":
        said = N_("{entry} starts its own ranks: start it once on each node; it chooses the NPUs")
        notes.append(_(said, entry=shown(start.entry)))
    if ranks in ("none", "unseen"):
        notes.append(
            _(
                "starts one NPU: the training does not look distributed, so further ranks would "
                "repeat the same work"
            )
        )
    # The script itself has the option that the PyTorch engine gives.
    if ('"--init_method"' in text or "'--init_method'" in text) and ranks != "program":
        notes.append(
            _(
                "{entry} does not need --init_method: the boot file sets RANK, WORLD_SIZE, "
                "MASTER_ADDR and MASTER_PORT, and keeps the option if the PyTorch engine passes it",
                entry=shown(start.entry),
            )
        )
    _show_written(given.folder, made, (*notes, *made.notes))
    say_next(f"npumigrate verify {shell_word(str(given.folder))}")


@launch.command()
@described("launch mindspore")
def mindspore(given: Given) -> None:
    """Write a script that starts a MindSpore program with msrun or a rank table.

    Assumptions are printed on standard error. Exit status: 0 done; 2 usage error or nothing written.
    """
    from migrator.launch.target import mindspore_script

    entry, _, notes = find_script(given.folder, given.main, "mindspore")
    made = mindspore_script(entry)
    write_all(given.folder, made, given.overwrite)
    _show_written(given.folder, made, notes)


def _show_written(folder: Path, made: Launch, assumed: Iterable[str]) -> None:
    for line in assumed:
        note(f"assumed: {line}")
    for name in made.files:
        typer.echo(shown(folder / name))


@rank_tables.callback(invoke_without_command=True)
@described("launch rank-table")
def make(given: Given) -> None:
    """Make an HCCL rank table from hosts, or check and convert one.

    Assumptions are printed on standard error. Exit status: 0 done; 1 check found problems; 2 usage
    error or unreadable input.
    """
    if given.context.invoked_subcommand:
        return
    hosts = _hosts(given.hosts, given.hostfile, given.hccn or [], _numbers(given.devices))
    said = N_("ranks 0 to {hosts}, numbered in the order of the hosts")
    lines = [_(said, hosts=sum(len(host.devices) for host in hosts) - 1)]
    without = [host.name for host in hosts if not host.addresses]
    if without and len(hosts) > 1:
        more = _(" and {without} more", without=len(without) - 3) if len(without) > 3 else ""
        said = N_("no NPU addresses for {shown}: HCCL needs them between servers (--hccn HOST=FILE)")
        lines.append(_(said, shown=", ".join(without[:3]) + more))
    elif without:
        lines.append(_("no NPU addresses: not needed on one server"))
    for line in lines:
        note(f"assumed: {line}")
    _give_table(rank_table.build(hosts), given.output, given.form)


def _give_table(table: Any, output: Optional[Path], form: str = "current") -> None:
    """Print a rank table; where it goes to a file, say how to check it."""
    give(rank_table.dump(table, form), output)
    if output:
        say_next(f"npumigrate launch rank-table check {shell_word(str(output))}")


def _hosts(hosts: str | None, hostfile: Path | None, hccn: list[str], devices: list[int]) -> list[Host]:
    if hosts and hostfile:
        raise RankTableError("--hosts and --hostfile cannot be used together")
    addresses = {}
    for value in hccn:
        name, sign, file = value.partition("=")
        if not sign:
            name, file = "", value
        addresses[name] = rank_table.parse_hccn(text_of(Path(file)), file)
    if hosts:
        found = rank_table.parse_hosts(hosts)
    elif hostfile:
        found = rank_table.parse_hostfile(text_of(hostfile), str(hostfile))
    elif addresses:  # hccn.conf alone: this machine, with the NPUs that it names
        found = [(name or socket.gethostname(), max(known) + 1) for name, known in addresses.items()]
        devices = devices or sorted(next(iter(addresses.values())))
    else:
        raise RankTableError("no hosts given: use --hosts a:8,b:8, --hostfile FILE or --hccn /etc/hccn.conf")
    if "" in addresses:
        if len(found) > 1:
            raise RankTableError("--hccn FILE describes one host; for several use --hccn HOST=FILE")
        addresses[found[0][0]] = addresses.pop("")
    return rank_table.with_addresses(found, addresses, devices)


def _numbers(text: str | None) -> list[int]:
    found: list[int] = []
    for part in (text or "").split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < 4096):
            stop("--devices: {part!r} is not a device or a range (0 or 4-7)", part=part)
        found += range(int(first), int(last) + 1)
    if len(set(found)) < len(found):
        stop("--devices: {text} lists a device twice", text=text)
    return found


@rank_tables.command()
@described("launch rank-table check")
def check(given: Given) -> None:
    """Check a rank table: counts, duplicate ranks, devices and addresses."""
    file, content = given.file, _content(given.file)
    try:
        found = list(rank_table.problems(content))
        if not found:
            servers = rank_table.read(content)
            ranks = sum(len(server.devices) for server in servers)
            said = N_("{file}: {content} form, servers: {servers}, ranks: {ranks}")
            typer.echo(
                _(said, file=file, content=rank_table.form_of(content), servers=len(servers), ranks=ranks)
            )
            return
    except RankTableError as error:
        stop(f"{file} {error}")
    for problem in found:
        typer.echo(wrapped(f"{file}: {problem}"))
    raise typer.Exit(PROBLEMS)


@rank_tables.command()
@described("launch rank-table convert")
def convert(given: Given) -> None:
    """Write a rank table in the other format."""
    try:
        servers = rank_table.read(_content(given.file))
    except RankTableError as error:
        stop(f"{given.file}: {error}")
    _give_table(servers, given.output, given.form)


@launch.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@described("launch mpi")
def mpi(given: Given) -> None:
    """Convert an mpirun, mpiexec or horovodrun command to launcher commands.

    Prints the command for each host; assumptions and omissions are printed on standard error. Exit
    status: 0 done; 2 the line cannot be converted.
    """
    from migrator.launch.mpi import MpiLineError, plan, plan_line
    from migrator.project.frameworks import other_framework, why_not_started

    read: Callable[[str], str] = lambda file: text_of(Path(file))  # noqa: E731
    line = given.line
    found = plan_line(line[0], read) if len(line) == 1 else plan(line, read)
    if given.table and not all(count for host, count in found.hosts):
        raise MpiLineError("--rank-table needs a number of ranks, not a shell variable")
    framework = other_framework(read(found.entry)) if Path(found.entry).is_file() else ""
    if framework:
        raise MpiLineError(why_not_started(harmless(found.entry), framework))
    for each in found.notes:
        note(harmless(each))
    for (host, _count), command in zip(found.hosts, found.commands):
        typer.echo(f"# on {host}\n{command}" if len(found.hosts) > 1 else command)
    if given.table:
        _give_table(
            rank_table.build([Host(name, tuple(range(count)), {}) for name, count in found.hosts]),
            given.table,
        )


def _content(file: Path) -> Any:
    try:
        return rank_table.parse(text_of(file))
    except RankTableError as error:
        stop(f"{file} {error}")


def text_of(file: Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file with its newlines as they are; stop where there is none."""
    from migrator.files.source import read_settings

    try:
        return read_settings(file).decode(encoding)
    except Unreadable as error:
        stop(f"{file}: {error}")
    except UnicodeDecodeError:
        stop(f"{file}: {_('not UTF-8')}")


def give(text: str, output: Path | None) -> None:
    """Print a text, or put it in its file by one rename."""
    if output is None:
        typer.echo(text.encode("utf-8"), nl=False)
        return
    from migrator.files.replacing import replace_file

    replace_file(output, text.encode("utf-8"))


def write_all(folder: Path, launch: Launch, overwrite: bool) -> None:
    """Write a target's files, each by one rename; none where one of them is there and may not be replaced.

    Raises ResultExists for that, and CannotWrite.
    """
    from migrator.files.replacing import refuse_link, replace_file

    for name in launch.files:
        if os.path.lexists(folder / name) and not overwrite:
            raise ResultExists("{folder} exists: use --overwrite to replace it", folder=shown(folder / name))
        if os.path.islink((folder / name).parent) and (folder / name).parent != folder:
            raise CannotWrite(
                "{parent} is a symbolic link: rename it, the files are written there",
                parent=shown((folder / name).parent),
            )
        refuse_link(folder / name, folder)
    for path in {(folder / name).parent for name in launch.files}:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(error, path) from error
    for name, text in launch.files.items():
        replace_file(folder / name, text.encode("utf-8"), folder)


def find_script(folder: Path, main: str | None, framework: str = "torch") -> tuple[str, str, list[str]]:
    """The script to start in a migrated project, its text, and what was assumed of it.

    It is ``main``, or the likeliest one of the framework. Raises SourceError where there is none.
    """
    from migrator.files.discover import discover
    from migrator.files.source import read, text_below
    from migrator.launch.target import chosen_script
    from migrator.project.entry import candidate, ranked

    check_folder(folder, "-o: ")
    names = [found.name for found in discover(folder) if found.kind == "python" and not main]
    texts = ((name, text_below(folder, name)) for name in names)
    candidates = (candidate(name, text, framework) for name, text in texts if text is not None)
    likely = ranked(filter(None, candidates))
    entry = chosen_script(folder, main, likely, framework)
    if not entry:
        raise SourceError(
            "no training script was found in {folder}: give it with -m FILE", folder=shown(folder)
        )
    others = _("; other candidates: {likely} (-m FILE)", likely=len(likely) - 1) if len(likely) > 1 else ""
    said = N_("training script: {entry}{others}")
    notes = [] if main else [_(said, entry=shown(entry), others=others)]
    return entry, read(folder / entry, entry).text, notes


def find_start(folder: Path, main: str | None) -> tuple[Start, str, list[str]]:
    """What to start in a migrated project, the script's text, and what was assumed of them.

    The script is ``main``, or the likeliest one. Raises SourceError where there is none.
    """
    from migrator.files.source import text_below
    from migrator.launch.target import start_in

    entry, text, notes = find_script(folder, main)
    return start_in(folder, [entry], partial(text_below, folder)), text, notes
