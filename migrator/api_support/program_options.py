"""What well-known programs take for devices and backends, where their sources are not at hand."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Optional

from migrator.api_support import tables
from migrator.language import _


class ProgramOption(NamedTuple):
    """An option of a program. ``values`` has for each value of CUDA what the program takes for NPUs.

    A value that is empty there is not supported on NPUs. A ``*`` at the end is a number, ``#`` are numbers
    with commas between them. ``needs_autoload``: the program does not import torch_npu, so these hold where
    torch does so by itself. ``advice`` is for values that cannot be replaced.
    """

    values: dict[str, str]
    needs_autoload: bool
    advice: str


def look_up(program: str, option: str) -> Optional[ProgramOption]:
    """The option of a program, or of a module that Python is given; None where it is not known."""
    return known().get((program, option))


@cache
def known() -> dict[tuple[str, str], ProgramOption]:
    """Every option that is known, by its program and its name."""
    found: dict[tuple[str, str], ProgramOption] = {}
    for programs, options, values, autoload, advice, _source in tables.rows("program_options"):
        pairs = (value.partition("=") for value in values.split())
        option = ProgramOption({old: new for old, _, new in pairs}, autoload == "yes", _(advice))
        for program in programs.split(";"):
            found |= {(program, name): option for name in options.split()}
    return found


def programs() -> set[str]:
    """The first words of the programs' names."""
    return {
        word for program, _ in known() for word in program.replace("-", " ").replace(".", " ").split()[:1]
    }
