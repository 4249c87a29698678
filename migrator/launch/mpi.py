"""From an ``mpirun`` or ``horovodrun`` line to the commands that start the same ranks on each host.

Such lines are found in documents and notebooks, too.

What starts them is a ``Starter``: ``run_distributed_npu.sh``, or MindSpore's msrun, which sets RANK_ID,
RANK_SIZE, DEVICE_ID and starts ``python``, ``python3`` and ``pytest``, and any other word as a script
(its options: ``mindspore/parallel/cluster/run.py`` of MindSpore 2.10).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any, Callable, NamedTuple, NoReturn

from migrator.api_support.env_vars import look_up, refused
from migrator.data_folders import reports_yaml
from migrator.findings.finding import Finding
from migrator.language import N_, MessageError, _
from migrator.launch.rank_table import RankTableError, parse_hostfile, parse_hosts
from migrator.launch.shell_line import ShellLine, split_line
from migrator.launch.target import NAME, rank_options
from migrator.other_files.command_lines import ASSIGNED

LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "horovodrun", "orterun", "prun")
_PORT = 29500
_MSRUN_PORT = 8118  # msrun's own
_PROGRAM = re.compile(r"(?:.*/)?(python[\d.]*|pytest)\Z")
_STARTED = ("python", "python3", "pytest")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ONE_SIGN = re.compile("[\ue000-\uf8ff]\\Z")  # what the shell fills in, see shell_line.py
_OF_SHELL = re.compile("[\ue000-\uf8ff]")
PYTHON = re.compile(r"(?:.*/)?python[\d.]*\Z")
PYTHON_FLAGS = ("-u", "-B", "-O")  # which change nothing of what is started
_CODE = "NPU932"
_LINE = re.compile(r"\b(horovodrun|mpirun|mpiexec(?:\.hydra)?)[ \t]+-(?:[^\\\n`]|\\\r?\n|\\.)*")
_STARTS_PYTHON = re.compile(r"\bpython|\.py\b|\bpytest\b")
_OVER = {"horovodrun": "MPI or gloo"}
_LONGEST = 10_000  # characters: of some lines the time to parse them grows with the square of their length


class MpiLineError(MessageError):
    """A line that is not understood; the text names the word and its place."""


class Plan(NamedTuple):
    """The hosts with their ranks, a command for each, and what was assumed or left out; the script.

    The number of ranks is 0 where only the shell knows it.
    """

    hosts: tuple[tuple[str, int], ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    entry: str


@dataclass
class MpiLine:
    """What the options said; ``read_text`` gives the text of a host file."""

    read_text: Callable[[str], str]
    ranks: int | None = None
    ranks_of_shell: str = ""  # $N, which only the shell knows
    hosts: list[tuple[str, int]] = field(default_factory=list)
    per_node: int | None = None
    variables: dict[str, str | None] = field(default_factory=dict)
    folder: str = ""
    logs: str = ""
    notes: list[str] = field(default_factory=list)
    entry: str = ""
    arguments: list[str] = field(default_factory=list)

    def note(self, text: str, /, **values: object) -> None:
        """Say what was assumed or left out."""
        self.notes.append(_(text, **values))


class Starter(NamedTuple):
    """What starts ranks instead of MPI.

    ``take`` puts the program into the line, from the place of a word on; ``words`` gives those of the command
    that starts the ranks of a host, by its number among the hosts.
    """

    take: Callable[[MpiLine, Sequence[str], int], None]
    words: Callable[[MpiLine, Sequence[tuple[str, int]], int], list[str]]


def plan(words: Sequence[str], read_text: Callable[[str], str]) -> Plan:
    """The launcher's commands that start what the words of an MPI line start.

    ``read_text`` gives the text of a host file. Raises MpiLineError, or
    RankTableError for hosts, with the word and its place in the line.
    """
    return _plan(ShellLine(words=tuple(words)), read_text, SCRIPT)


def plan_line(
    text: str, read_text: Callable[[str], str], alone: bool = False, starter: Starter | None = None
) -> Plan:
    """The same for a line of shell: what belongs to the shell stays what it is.

    Other commands (unless the launcher's is wanted ``alone``), redirections, ``&``, ``~`` and variables stand
    where they stood. Without a ``starter`` it is the launcher's script. Raises MpiLineError also for a line
    that cannot be split into words.
    """
    if len(text) > _LONGEST:
        raise MpiLineError("the line is longer than {longest} characters", longest=_LONGEST)
    try:
        shell = split_line(text, is_launcher) or split_line(text, lambda word: True) or ShellLine()
    except MessageError as error:
        raise MpiLineError("cannot split the line into words: {error}", error=error) from None
    try:
        found = _plan(shell, read_text, starter or SCRIPT)
    except (MpiLineError, RankTableError) as error:
        raise type(error)(shell.shown(str(error))) from None
    notes = [shell.shown(note) for note in found.notes]
    commands = [" ".join(filter(None, (command, shell.redirections))) for command in found.commands]
    if not alone:
        if any(is_launcher(word) for word in shell.after.split()):
            notes.append(_("left unchanged:{rstrip}", rstrip=shell.after.rstrip()))
        commands = [f"{shell.before}{command}{shell.after.rstrip()}" for command in commands]
    return found._replace(commands=tuple(commands), notes=tuple(notes))


def is_launcher(word: str) -> bool:
    """Whether a command is one of MPI's or Horovod's."""
    return PurePosixPath(word).name in LAUNCHERS


def _plan(shell: ShellLine, read_text: Callable[[str], str], starter: Starter) -> Plan:
    line = _read(shell.words, read_text, starter)
    for word in shell.assignments:
        name, _sign, value = word.partition("=")
        if line.variables.get(name) is None:  # not: named by -x, which asks for this value
            line.variables[name] = value
    hosts = _share(line)
    settings = [*_settings(line, shell), *shell.starters]
    folder = f"cd {shell.quoted(line.folder)} && " if line.folder else ""
    every = (starter.words(line, hosts, number) for number in range(len(hosts)))
    commands = (folder + " ".join([*settings, *map(shell.quoted, words)]) for words in every)
    return Plan(tuple(hosts), tuple(commands), tuple(line.notes), line.entry)


def _read(words: Sequence[str], read_text: Callable[[str], str], starter: Starter) -> MpiLine:
    if not words or not is_launcher(words[0]):
        said = N_("word 1: {first!r} is not one of {launchers}")
        raise MpiLineError(said, first=words[0] if words else "", launchers=", ".join(LAUNCHERS))
    line = MpiLine(read_text)
    at = 1
    while at < len(words) and words[at].startswith("-"):
        name, sign, inline = words[at].partition("=")
        option = _options().get(name)
        if option is None:
            raise MpiLineError("word {at}: unknown option {words}", at=at + 1, words=words[at])
        count = option["values"]
        inside = sign and count == 1
        values = [inline] if inside else list(words[at + 1 : at + 1 + count])
        if len(values) < count:
            raise MpiLineError("word {at}: {name} needs a value", at=at + 1, name=name)
        _take(line, name, values, at + 1)
        at += 1 if inside else 1 + count
    if at == len(words):
        raise MpiLineError("no program follows the options")
    if ":" in words[at:]:
        _stop_at(words.index(":", at), _("several programs in one line (':') cannot be launched"))
    starter.take(line, words, at)
    return line


def _take(line: MpiLine, name: str, values: list[str], place: int) -> None:
    option = _options()[name]
    means = option.get("means")
    if means == "ranks" and _ONE_SIGN.match(values[0]):
        line.ranks_of_shell = values[0]
    elif means in ("ranks", "per_node"):
        if not values[0].isdigit() or int(values[0]) < 1:
            said = N_("word {place}: {name} {values} is not a number of processes")
            raise MpiLineError(said, place=place, name=name, values=values[0])
        setattr(line, means, int(values[0]))
    elif means == "hosts":
        # MPI counts one slot for a host without a number.
        text = ",".join(part if ":" in part else f"{part}:1" for part in values[0].split(","))
        line.hosts = parse_hosts(text)
    elif means == "hostfile" and _OF_SHELL.search(values[0]):
        _stop_at(place - 1, _("only the shell knows the file {file}: name it", file=values[0]))
    elif means == "hostfile":
        line.hosts = parse_hostfile(line.read_text(values[0]), values[0])
    elif means == "variable":
        found = [*ASSIGNED.finditer(values[0])]
        if ",".join(each[0] for each in found) != values[0]:  # a shell would read it as a command
            raise MpiLineError("{name!r} is not a variable name", name=values[0].partition("=")[0])
        line.variables.update((each[1], each[2]) for each in found)
    elif means == "variable_pair":
        line.variables[values[0]] = values[1]
    elif means in ("folder", "logs"):
        setattr(line, means, values[0])
    else:
        why = option["why"].rstrip(".")
        line.note("left out: {value} ({value2})", value=" ".join([name, *values]), value2=why)


def _take_program(line: MpiLine, words: Sequence[str], at: int) -> None:
    of_shell = _ONE_SIGN.match(words[at]) and len(words) > at + 1  # ${PYTHON:-python}
    if PYTHON.match(words[at]) or of_shell:
        if of_shell:
            said = N_(
                "assumed: {program} is a Python interpreter; the launcher uses $PYTHON, or python from PATH"
            )
            line.note(said, program=words[at])
        at += 1
        while at < len(words) and words[at] in PYTHON_FLAGS:
            at += 1
        if at < len(words) and words[at].startswith("-"):
            _stop_at(at, _("python {program}: only scripts can be launched", program=words[at]))
    program = words[at] if at < len(words) else "python"
    if not program.endswith(".py"):
        _stop_at(at, _("{program!r} is not a Python script", program=program))
    line.entry, line.arguments = program, list(words[at + 1 :])


def _stop_at(at: int, text: str) -> NoReturn:
    """Raise MpiLineError with the place of a word."""
    raise MpiLineError("word {at}: {text}", at=at + 1, text=text)


def _share(line: MpiLine) -> list[tuple[str, int]]:
    """The ranks of each host, filled host by host as OpenMPI does."""
    if line.ranks_of_shell and line.hosts:
        said = N_("-n {ranks_of_shell}: must be a number if hosts are given")
        raise MpiLineError(said, ranks_of_shell=line.ranks_of_shell)
    if not line.hosts:
        ranks = 0 if line.ranks_of_shell else line.ranks or line.per_node
        if ranks is None:
            raise MpiLineError("neither a number of processes (-n) nor hosts (-H) given")
        line.note("assumed: all ranks run on this machine, as no host is given")
        return [("localhost", ranks)]
    slots = [(name, line.per_node or count) for name, count in line.hosts]
    if line.ranks is None:
        return slots
    total, before = sum(count for _name, count in slots), accumulate((n for _, n in slots), initial=0)
    if line.ranks > total:
        said = N_("-n {ranks} exceeds the {total} slots of the hosts")
        raise MpiLineError(said, ranks=line.ranks, total=total)
    shares = [(name, min(n, line.ranks - begin)) for (name, n), begin in zip(slots, before)]
    return [(name, count) for name, count in shares if count > 0]


def _script_words(line: MpiLine, hosts: Sequence[tuple[str, int]], number: int) -> list[str]:
    """The words of the launcher's script."""
    if number == 0 and len({count for _, count in hosts}) > 1:
        line.note("assumed: torchrun (torch 1.9 or newer), as hosts have different numbers of ranks")
    if number == 0 and len(hosts) > 1:
        said = N_("assumed: port {port} of {hosts} is free (--master-port changes it)")
        line.note(said, port=_PORT, hosts=hosts[0][0])
    words = ["bash", NAME, "--entry", line.entry]
    words += rank_options(hosts[number][1] or line.ranks_of_shell, len(hosts), number, hosts[0][0], _PORT)
    if line.logs:
        words += ["--log-dir", line.logs]
    return [*words, "--", *line.arguments] if line.arguments else words


SCRIPT = Starter(_take_program, _script_words)


def _take_for_msrun(line: MpiLine, words: Sequence[str], at: int) -> None:
    """Python, pytest or a script, with all that stands behind it."""
    first, *rest = words[at:]
    if not first.endswith(".py") and not _PROGRAM.match(first):
        _stop_at(at, _("{program!r} is not a Python script", program=first))
    if not first.endswith(".py") and first not in _STARTED:
        if first.endswith("pytest"):
            _stop_at(at, _("msrun starts pytest by that name only, not {name}", name=first))
        line.note(N_("assumed: {first} is the python in PATH, which msrun starts"), first=first)
        first = "python"
    line.arguments = [first, *rest]
    line.entry = next((word for word in line.arguments if word.endswith(".py")), "")


def _msrun_words(line: MpiLine, hosts: Sequence[tuple[str, int]], number: int) -> list[str]:
    """The words of msrun on a host."""
    count, first = hosts[number][1], hosts[0][0]
    total = sum(ranks for _, ranks in hosts) if count else line.ranks_of_shell
    words = ["msrun", f"--worker_num={total}", f"--local_worker_num={count or line.ranks_of_shell}"]
    if len(hosts) > 1:
        if number == 0:
            said = N_("assumed: port {port} of {first} is free (--master_port changes it)")
            line.note(said, port=_MSRUN_PORT, first=first)
        words += [f"--node_rank={number}", f"--master_addr={first}", f"--master_port={_MSRUN_PORT}"]
    return [*words, f"--log_dir={line.logs or 'msrun_log'}", "--join=True", *line.arguments]


MSRUN = Starter(_take_for_msrun, _msrun_words)


def _settings(line: MpiLine, shell: ShellLine) -> list[str]:
    """The variables as ``NAME=value`` words, those of CUDA and NCCL under their NPU names."""
    words = []
    for name, value in line.variables.items():
        if not _VARIABLE.match(name):  # a shell would read it as a command
            raise MpiLineError("{name!r} is not a variable name", name=name)
        known = look_up(name)
        new = known.npu if known else name
        if known is not None and new != name:
            given = None if value is None or any(char in shell.signs for char in value) else value
            why = known.advice.rstrip(".")
            if given is not None and refused(known, given):
                said = N_("{npu} does not take {given}: {value}")
                why = _(said, npu=new, given=given, value=why)
            elif new and known.keeps_values:
                why = ""
            if why:
                line.note("left out: {name} ({why})", name=name, why=why)
                continue
            line.note("{name} became {new}", name=name, new=new)
        if value is None:  # what sets it says the new name by now, too
            line.note("assumed: {name} is already set on each host", name=new)
        else:
            words.append(f"{new}={shell.quoted(value)}")
    return words


@cache
def _options() -> dict[str, dict[str, Any]]:
    listed = reports_yaml("launcher/mpi_options.yaml")
    return {name: option for option in listed for name in option["names"]}


def find_lines(text: str, foreign: Collection[str] = ()) -> Iterator[Finding]:
    """A finding for each line that starts a Python program so; its advice has the lines to write.

    Silent where it starts a script of another framework, of the names in ``foreign``.
    """
    first, position = 1, 0
    for found in _LINE.finditer(text):
        first += text.count("\n", position, found.start())
        position = found.start()
        launcher = found[1]
        line = re.sub(r"\\\r?\n\s*", " ", found.group())
        for quote in "\"'":  # it may be in one: "bash -c 'mpirun …'", `["mpirun …"],`
            if line.count(quote) % 2:
                line = line[: line.rindex(quote)]
        line = line.rstrip("\r \"'\\")
        words = {word.rpartition("/")[2] for word in line.split()}
        if not is_of_python(launcher, line) or not words.isdisjoint(foreign):
            continue
        last = first + found.group().count("\n")
        advice = instead_of(line)[1]
        yield Finding(_CODE, message_for(launcher), first, 1, last, 1, api=launcher, advice=advice)


def is_of_python(launcher: str, line: str) -> bool:
    """Whether a launcher's line starts Python."""
    return launcher == "horovodrun" or _STARTS_PYTHON.search(line) is not None


def message_for(launcher: str) -> str:
    """The message on a launcher."""
    said = N_("{launcher} starts the program over {launcher2}")
    return _(said, launcher=launcher, launcher2=_OVER.get(launcher, "MPI"))


def instead_of(line: str, starter: Starter | None = None) -> tuple[str, str]:
    """The one command that starts what a line starts, and the advice that has all, or says why none is known.

    The command is empty where there are several. ``starter`` starts it instead of the launcher's script, for
    which nothing may be assumed.
    """
    try:
        planned = plan_line(line, unread, alone=True, starter=starter)
    except (MpiLineError, RankTableError) as error:
        form = _("bash run_distributed_npu.sh --nproc N -- …")
        said = N_("Write the launcher's line: {form}; {error}")
        return "", _(said, form=form if starter is None else "msrun --worker_num=N …", error=error)
    if len(planned.commands) == 1:
        (command,) = planned.commands
        return command if starter or not planned.notes else "", f"Write: {command}"
    parts = [f"on {host}: {command}" for (host, _), command in zip(planned.hosts, planned.commands)]
    return "", "Write " + "; ".join(parts)


def unread(name: str) -> str:
    """For a line of which no file can be read. Raises MpiLineError."""
    raise MpiLineError('{name} is not read here: use npumigrate launch mpi "mpirun …"', name=name)
