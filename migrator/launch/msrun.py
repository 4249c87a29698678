"""From an ``mpirun`` line to MindSpore's msrun, which starts ranks on NPUs without MPI.

Its options: ``mindspore/parallel/cluster/run.py`` of MindSpore 2.10. It sets RANK_ID, RANK_SIZE, DEVICE_ID
and starts ``python``, ``python3`` and ``pytest``, and any other word as a script of Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from migrator.launch.mpi import MpiLine, Starter, stop_at

LOGS = "msrun_log"
_PORT = 8118  # msrun's own
_PROGRAM = re.compile(r"(?:.*/)?(python[\d.]*|pytest)\Z")
_STARTED = ("python", "python3", "pytest")


def _take(line: MpiLine, words: Sequence[str], at: int) -> None:
    """Python, pytest or a script, with all that stands behind it."""
    first, rest = words[at], list(words[at + 1 :])
    if not first.endswith(".py") and not _PROGRAM.match(first):
        stop_at(at, f"{first!r} is no Python, pytest or Python script")
    if first.endswith(".py") or first in _STARTED:
        line.arguments = [first, *rest]
    elif first.endswith("pytest"):
        stop_at(at, f"msrun starts pytest by that name only, not {first}")
    else:
        line.arguments = ["python", *rest]
        line.notes.append(f"assumed: {first} is the python in PATH, which msrun starts")
    line.entry = next((word for word in line.arguments if word.endswith(".py")), "")


def _words(line: MpiLine, hosts: Sequence[tuple[str, int]], number: int) -> list[str]:
    """The words of msrun on a host."""
    count = hosts[number][1]
    total = sum(ranks for _, ranks in hosts) if count else line.ranks_of_shell
    words = ["msrun", f"--worker_num={total}", f"--local_worker_num={count or line.ranks_of_shell}"]
    if len(hosts) > 1:
        if number == 0:
            line.notes.append(f"assumed: port {_PORT} of {hosts[0][0]} is free (--master_port changes it)")
        words += [f"--node_rank={number}", f"--master_addr={hosts[0][0]}", f"--master_port={_PORT}"]
    return [*words, f"--log_dir={line.logs or LOGS}", "--join=True", *line.arguments]


MSRUN = Starter(_take, _words)
