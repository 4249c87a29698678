"""A command that is killed leaves nothing half-written that is taken for finished, and can be started again.

``benchmarks/faults.py`` does it a hundred times.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.faults.killing import COMMANDS, Command, Trial


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.thorough if each.name == "fleet" else ())
        for each in COMMANDS
    ],
)
def test_killed_at_any_moment(command: Command, tmp_path: Path) -> None:
    if command.name == "fleet":
        pytest.importorskip("distributed")
    trial, random = Trial(tmp_path, command), Random()
    assert [trial.faults(random) for _ in range(2)] == [[], []]
