"""Values of options that may be repeated, for all commands."""

from __future__ import annotations

from typing import Optional

# An option that may be repeated. typer reads annotations at run time: for Python 3.9 it is not "... | None".
Several = Optional[list[str]]


def split(values: Several) -> tuple[str, ...]:
    """The parts of values that may also be separated by commas: ``--select NPU1,NPU2 --select NPU3``."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
