"""What can be said to each command: the rows of ``reports/options.json``, for argparse and typer alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, Optional

from migrator.data_folders import data_folder
from migrator.light import NamedTuple

Several = Optional[list[str]]  # of an option that may be repeated
_OfLint = Literal["codes", "ignores", "overrides", "patterns", "switch"]
Kind = Literal[_OfLint, "amount", "choice", "flag", "number", "path", "paths", "text", "texts"]


class Option(NamedTuple):
    """An option of some commands, or an argument: ``spelled`` is empty then, and where it is only a key.

    ``name`` is how the command's function knows it. ``help`` is its line in ``--help``; its value is of a
    ``kind`` (a ``flag`` is given or not, a ``switch`` may also be said no to), one of the ``choices``, or
    from ``least`` to ``most``; ``default`` where it is not given, unless it is ``required``.

    The rest is about commands that argparse reads: the ``group`` in the help. Of lint ``name`` is also
    the key in a configuration, and ``key`` says what it is there: empty where there is none. ``set_by``:
    overrides may set it for some ``paths``, and an ``editor`` may in its settings.
    """

    commands: Sequence[str]
    name: str
    spelled: str = ""
    metavar: str = ""
    help: str = ""
    least: Optional[float] = None
    most: Optional[float] = None
    kind: Kind = "text"
    default: Any = None
    required: bool = False
    choices: Sequence[str] = ()
    group: str = ""
    key: str = ""
    set_by: str = ""

    @property
    def repeated(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in ("codes", "ignores", "paths", "patterns")


@cache
def every_option() -> list[Option]:
    """The whole table."""
    rows = json.loads((data_folder("reports") / "options.json").read_bytes())
    return [Option(**row) for row in rows]


def options_of(command: str) -> list[Option]:
    """The options and arguments of a command such as ``launch k8s``, in the order of the table."""
    return [option for option in every_option() if command in option.commands]


def split(values: Several) -> tuple[str, ...]:
    """The parts of values that may also be separated by commas: ``--select NPU1,NPU2 --select NPU3``."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
