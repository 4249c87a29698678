"""``horovodrun`` lines in scripts and documents, with the launcher's lines that take their places."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from migrator.findings.finding import Finding
from migrator.launch.mpi import MpiLineError, plan
from migrator.launch.rank_table import RankTableError

_CODE = "NPU932"
_LINE = re.compile(r"\bhorovodrun[ \t]+-(?:[^\\\n`]|\\\r?\n|\\.)*")
_ENDS = re.compile(r"\d?>|[<>|&;]")


def find_lines(text: str) -> Iterator[Finding]:
    """A finding for each ``horovodrun`` line; its advice has the lines to write."""
    first, position = 1, 0
    for found in _LINE.finditer(text):
        first += text.count("\n", position, found.start())
        position = found.start()
        line = re.sub(r"\\\r?\n\s*", " ", found.group()).rstrip("\r \"'")
        yield Finding(
            code=_CODE,
            api="horovodrun",
            line=first,
            end_line=first + found.group().count("\n"),
            column=1,
            end_column=1,
            message="horovodrun starts the program over MPI or gloo",
            advice=_advice(line),
        )


def _advice(line: str) -> str:
    try:
        planned = plan(_words(line), _unread)
    except (MpiLineError, RankTableError, ValueError) as error:
        return f"Write the launcher's line: bash run_distributed_npu.sh --nproc N -- …; {error}"
    if len(planned.commands) == 1:
        return f"Write: {planned.commands[0]}"
    parts = [f"on {host}: {command}" for (host, _), command in zip(planned.hosts, planned.commands)]
    return "Write " + "; ".join(parts)


def _words(line: str) -> list[str]:
    """The words of the command, up to a redirection or another command."""
    words = []
    for word in shlex.split(line):
        if _ENDS.match(word):
            break
        words.append(word.rstrip(";"))
        if word.endswith(";"):
            break
    return words


def _unread(name: str) -> str:
    raise MpiLineError(f'{name} is not read here: npumigrate launch mpi "horovodrun …"')
