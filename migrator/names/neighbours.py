"""What the other files of a project say of the names that a file imports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Neighbours:
    """Answers by the full names that imports bring, relative ones as they are written.

    ``module`` is the module of torch that a name stands for, empty for none; ``asked`` is what a flag, or a
    function's answer, depends on: names of torch and others, and ``version`` for torch's release.
    """

    module: Callable[[str], str]
    asked: Callable[[str], frozenset[str]]
