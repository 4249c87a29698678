"""``horovodrun`` and ``mpirun`` lines in scripts and documents, with what to write in their places."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from migrator.findings.finding import Finding
from migrator.language import N_, _
from migrator.launch.mpi import MpiLineError, Starter, plan_line
from migrator.launch.rank_table import RankTableError

_CODE = "NPU932"
_LINE = re.compile(r"\b(horovodrun|mpirun|mpiexec(?:\.hydra)?)[ \t]+-(?:[^\\\n`]|\\\r?\n|\\.)*")
_PYTHON = re.compile(r"\bpython|\.py\b|\bpytest\b")
_OVER = {"horovodrun": "MPI or gloo"}


def find_lines(text: str, foreign: Collection[str] = ()) -> Iterator[Finding]:
    """A finding for each line that starts a Python program so; its advice has the lines to write.

    Nothing is said where it starts a script of another framework, of the names in ``foreign``.
    """
    first, position = 1, 0
    for found in _LINE.finditer(text):
        first += text.count("\n", position, found.start())
        position = found.start()
        launcher = found[1]
        line = _whole(re.sub(r"\\\r?\n\s*", " ", found.group()))
        if not is_of_python(launcher, line) or is_of_other_framework(line, foreign):
            continue
        last = first + found.group().count("\n")
        advice = instead_of(line)[1]
        yield Finding(_CODE, message_for(launcher), first, 1, last, 1, api=launcher, advice=advice)


def is_of_other_framework(line: str, foreign: Collection[str]) -> bool:
    """Whether a line starts a script of another framework than PyTorch, which our launcher does not."""
    words = {word.rpartition("/")[2] for word in line.split()}
    return any(each in words for each in foreign)


def _whole(line: str) -> str:
    """A line without the end of what it stands in: "bash -c 'mpirun …'", `["mpirun …"],`."""
    for quote in "\"'":
        if line.count(quote) % 2:
            line = line[: line.rindex(quote)]
    return line.rstrip("\r \"'\\")


def is_of_python(launcher: str, line: str) -> bool:
    """Whether a launcher's line starts Python."""
    return launcher == "horovodrun" or _PYTHON.search(line) is not None


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
        planned = plan_line(line, _unread, alone=True, starter=starter)
    except (MpiLineError, RankTableError) as error:
        form = _("bash run_distributed_npu.sh --nproc N -- …")
        said = N_("Write the launcher's line: {form}; {error}")
        return "", _(said, form=form if starter is None else "msrun --worker_num=N …", error=error)
    if len(planned.commands) == 1:
        (command,) = planned.commands
        return command if starter or not planned.notes else "", f"Write: {command}"
    parts = [f"on {host}: {command}" for (host, _), command in zip(planned.hosts, planned.commands)]
    return "", "Write " + "; ".join(parts)


def _unread(name: str) -> str:
    raise MpiLineError('{name} is not read here: npumigrate launch mpi "mpirun …"', name=name)
