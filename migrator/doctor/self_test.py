"""Two ranks over HCCL on the NPUs of this machine, real or emulated: does a group work at all?"""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Sequence

from migrator.doctor import two_ranks
from migrator.explain.table import entry_for, kinds_of
from migrator.language import _
from migrator.launch.fault_texts import Fault, fault

RANKS = 2
_LIMIT = 300  # seconds; a group waits 120, and CANN starts slowly


def run_self_test(python: Sequence[str]) -> tuple[list[str], list[Fault]]:
    """The steps that both ranks have done, and what went wrong in the next one, if anything.

    ``python`` is the command of the one with torch and torch_npu. Raises OSError if it cannot be started.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
    command, errors, said = [*python, two_ranks.__file__, address], "", ""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT)
        said, errors = ended.stdout, ended.stderr
        reason = _("it exited with code {code}", code=ended.returncode) if ended.returncode else ""
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode("utf-8", "replace") if isinstance(late.stdout, bytes) else ""
        reason = _("it did not finish within {limit} s", limit=_LIMIT)
    begun = re.findall(r"(?m)^\d (.+)$", said)
    steps = list(dict.fromkeys(begun))
    if not reason:
        return steps, []
    # Where one rank has gone further, the other one failed in the step before.
    step = next((step for step in reversed(steps) if begun.count(step) == RANKS), steps[-1] if steps else "")
    # Why: the last exception, with what the table of errors says of it.
    lines = [line for line in errors.splitlines() if line[:1].isalpha()]
    looked_up = (entry_for(line, kinds_of(line.partition(":")[0])) for line in reversed(lines))
    entry = next((found.said() for found in looked_up if found), None)
    do = entry.do[0] if entry else _("npumigrate doctor shows the problems of this machine")
    reason = lines[-1] if lines else reason
    reason += f" ({entry.code}: {entry.name})" if entry else ""
    failure = fault("self-test", step=step or _("start of Python"), reason=reason, do=do)
    return steps[: steps.index(step)] if step else [], [failure]
