"""What several commands make of their options."""

from __future__ import annotations

from typing import Optional

from migrator.cli.ending import stop

# An option that may be repeated. typer reads annotations at run time: for Python 3.9 it is not "... | None".
Several = Optional[list[str]]


def split(values: Several) -> tuple[str, ...]:
    """The parts of values that may also be separated by commas: ``--select NPU1,NPU2 --select NPU3``."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


def check_hardware(hardware: Optional[str]) -> None:
    """Stop where there is no such product line."""
    from migrator.api_support.hardware import HARDWARE

    if hardware is not None and hardware not in HARDWARE:
        stop(f"there is no hardware {hardware!r}: choose of {', '.join(HARDWARE)}")
