"""What a Python file shows of how its program is started: as a script, with Horovod."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrator.files.document import is_notebook
from migrator.project.entry import Candidate, candidate
from migrator.project.frameworks import other_framework

_HOROVOD = re.compile(r"^[ \t]*(?:import[^\n]*|from)[ \t]horovod\b", re.M)


@dataclass(frozen=True)
class StartFacts:
    """One file: whether it imports Horovod, or is a script; the ``framework`` that is not PyTorch."""

    file: str
    horovod: bool
    candidate: Candidate | None
    framework: str = ""


def scan_start(name: str, text: str) -> StartFacts | None:
    """The facts of a file; None where it shows nothing. A notebook is not started."""
    if is_notebook(name):
        return None
    horovod = "horovod" in text and bool(_HOROVOD.search(text))
    facts = StartFacts(name, horovod, candidate(name, text), other_framework(text))
    return facts if horovod or facts.candidate or facts.framework else None
